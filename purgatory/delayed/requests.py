"""What can be asked of the thread that writes the log, and its answers."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from purgatory.delayed.errors import IdTaken
from purgatory.delayed.frame import Kind
from purgatory.delayed.ids import Taken


class Put(NamedTuple):
    """A request to store a message. It stays in the log if it is `soon`.

    It may take the id of a message whose token is among those that are `delivering`.
    """

    due: int
    name: str | None
    payload: bytes
    soon: bool
    delivering: Container[int] = ()


class End(NamedTuple):
    """A request to note that a message was cancelled or delivered.

    With `check`, a message that was cancelled before is not cancelled again.
    """

    kind: Kind
    token: int
    due: int
    named: bool
    check: bool = False


class Find(NamedTuple):
    """A request for the message with an id of the user's."""

    name: str


class Stored(NamedTuple):
    """The answer to a Put: the token of the message, where it is, and whether it was there before."""

    token: int
    position: int
    repeated: bool = False


Request = Put | End | Find
Answer = Stored | IdTaken | Taken | bool | None
