"""What is shown of users' keys, operations and errors: a repr of bounded length, whatever they are."""

from __future__ import annotations

from reprlib import Repr
from typing import Any, Final

KEY_LENGTH: Final = 80
TEXT_LENGTH: Final = 300

# Those of the built-in types are cut before they are written: a key may be a megabyte of text.
_BOUNDED: Final = (str, bytes, int, tuple, frozenset)


class BoundedRepr(Repr):
    """Bounds what the library's own would write, or sort, as a whole."""

    repr_bytes = Repr.repr_str

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        if len(x) > self.maxfrozenset:
            return f"<frozenset of {len(x):,}>"
        return super().repr_frozenset(x, level)


_repr: Final = BoundedRepr()
_repr.maxstring = _repr.maxother = KEY_LENGTH


def label(value: object, length: int = KEY_LENGTH) -> str:
    """The repr of `value`, cut to `length`; of one whose repr() raises, it says just that."""
    try:
        written = _repr.repr(value) if type(value) in _BOUNDED else repr(value)
    except Exception as error:
        written = f"<{type(value).__name__} whose repr() raised {type(error).__name__}>"
    return written if len(written) <= length else written[: length - 1] + "…"
