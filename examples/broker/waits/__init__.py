"""Everything that waits in the brokers: one module for each kind of operation.

Each module has three parts, in this order:

1. The operation. ``try_complete`` looks at the condition, and ``on_complete`` makes the result.
2. The function that parks it, ``park_...``, which says what the operation watches.
3. The function that checks it, ``check_...``. Its docstring says after which changes to call it.

The operations know no protocol, no logs and no groups: what an operation looks at is a callable. Each has
``__slots__``, since there may be very many.
"""
