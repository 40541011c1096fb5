"""Older designs, as small libraries, to compare with this library's core.

Timers, all behind the interface of `timer`: `call_at` (one timer of the event loop each), `lazy_heap`,
`ticker_wheel`, and `kafka_timer`, Kafka's present one. Purgatories: `callback_dict` (code by hand, over any
of those timers), `kafka_purgatory`, Kafka's present one, and `kafka_08`, the one before.

Each is written as one would write it in Python for use: slots, no locks, and no unnecessary layers. They
leave out what a library adds, such as checks of arguments or containing the errors of user code.
"""
