"""Names of the library that a subclass takes for itself, seen when the class is made."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from types import FunctionType


def check_names(made: type, protected: Mapping[type, frozenset[str]]) -> None:
    """Raise TypeError for a class that overrides, or assigns to, a name that belongs to one of its bases.

    `protected` has the names of each base. What comes behind a base in the order of the bases does not
    override it.
    """
    for place, base in enumerate(made.__mro__):
        for kind in made.__mro__[:place]:
            names = protected.get(base, frozenset())
            for name in sorted(names.intersection(vars(kind))):
                raise TypeError(
                    f"{kind.__name__}.{name} overrides a name that belongs to the library: rename it"
                )
            for method in _methods(kind):
                for name in _assigned(method, names):
                    raise TypeError(
                        f"{kind.__name__}.{method.__name__} sets self.{name}, a name that belongs to the "
                        "library: choose another name"
                    )


def _methods(kind: type) -> Iterator[FunctionType]:
    """The functions whose first parameter is the instance, as far as no decorator hides them."""
    for member in vars(kind).values():
        for function in (member.fget, member.fset) if isinstance(member, property) else (member,):
            if isinstance(function, FunctionType) and function.__code__.co_argcount:
                yield function


def _assigned(method: FunctionType, names: frozenset[str]) -> Iterator[str]:
    """The names among `names` to which the method assigns, as attributes of its first parameter.

    The bytecode tells. It does not tell of `setattr`, nor of assignments elsewhere.
    """
    code = method.__code__
    if names.isdisjoint(code.co_names):
        return
    loaded = copied = None
    for instruction in dis.get_instructions(code):
        operation, argument = instruction.opname, instruction.argval
        if operation == "STORE_ATTR" and loaded == code.co_varnames[0] and argument in names:
            yield argument
        if operation == "COPY":
            # An assignment such as `+=` copies the object, and swaps the copy to the top at the end.
            copied = loaded
        elif operation == "SWAP":
            loaded = copied
        elif operation != "EXTENDED_ARG":
            # Since 3.13, one instruction may load two variables. The second one is on top.
            loaded = argument[-1] if isinstance(argument, tuple) else argument
            loaded = loaded if "LOAD_FAST" in operation or operation == "LOAD_DEREF" else None
