"""Keys that a test can break after they were watched."""

from __future__ import annotations

from collections.abc import Callable


class BadKey(Exception):
    """The exception that a method of a broken key raises."""


class Key:
    """A key that is equal to others of its name. A test may change it at any time.

    `hashing` and `comparing` are called when the key is hashed or compared. `formatted` counts its repr().
    """

    def __init__(self, name: str, hashed: int) -> None:
        self.name = name
        self.hashed = hashed
        self.hashing: Callable[[], object] | None = None
        self.comparing: Callable[[], object] | None = None
        self.formatted = 0

    def __hash__(self) -> int:
        if self.hashing is not None:
            self.hashing()
        return self.hashed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key):
            return False
        for key in (self, other):
            if key.comparing is not None:
                key.comparing()
        return self.name == other.name

    def __repr__(self) -> str:
        self.formatted += 1
        return f"<Key {self.name}>"
