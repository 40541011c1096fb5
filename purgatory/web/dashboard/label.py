"""Text for users' keys, operations and errors on the page: a repr of bounded length that never raises."""

from __future__ import annotations

from reprlib import Repr
from typing import Any, Final

from purgatory.errors import safe_repr

KEY_LENGTH: Final = 80
TEXT_LENGTH: Final = 300

# Objects of these types are cut before their repr is made: a key may be a megabyte of text.
_BOUNDED: Final = (str, bytes, int, tuple, frozenset)


class BoundedRepr(Repr):
    """Cuts what reprlib would write or sort as a whole. It never raises."""

    repr_bytes = Repr.repr_str

    def repr1(self, x: Any, level: int) -> str:
        # reprlib decides by the name of a type alone, and a user's class may have the same name.
        return super().repr1(x, level) if type(x) in _BOUNDED else self.repr_instance(x, level)

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        if len(x) > self.maxfrozenset:
            return f"<frozenset of {len(x):,}>"
        return super().repr_frozenset(x, level)

    def repr_int(self, x: int, level: int) -> str:
        # An int of more than 4,300 digits has no repr.
        return _cut(safe_repr(x), self.maxlong)

    def repr_instance(self, x: Any, level: int) -> str:
        return _cut(safe_repr(x), self.maxother)


_repr: Final = BoundedRepr()
_repr.maxstring = _repr.maxother = _repr.maxlong = KEY_LENGTH


def label(value: object, length: int = KEY_LENGTH) -> str:
    """`safe_repr` of `value`, cut to `length` characters, with escapes for characters that nobody sees.

    A class with a repr of its own may put anything in it: one control character reverses a whole line.
    """
    return _cut(visible(_repr.repr(value) if type(value) in _BOUNDED else safe_repr(value)), length)


def kind_of(operation: object) -> str:
    """The name of the class of an operation, as `label` writes text."""
    return _cut(visible(type(operation).__name__), KEY_LENGTH)


def visible(text: str) -> str:
    """`text` with an escape for each character that Python's repr escapes, too."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
