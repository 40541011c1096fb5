"""A message, and the receipt for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from purgatory.delayed.schedule import FARTHEST


@dataclass(frozen=True, slots=True)
class Receipt:
    """What `schedule` returns, and `cancel` takes. ``str(receipt)`` can be stored; `parse` reads it back.

    `id` is the id of the message, and `due` its due time in seconds since the epoch. A receipt belongs to
    the store that gave it. Raises ValueError for values that no store gives.
    """

    id: str
    due: float
    token: int

    def __post_init__(self) -> None:
        if not (self.id and abs(self.due * 1000) <= FARTHEST and 0 <= self.token < 1 << 64):
            raise ValueError(f"no store gives a receipt with {self.id!r}, {self.due!r} and {self.token!r}")

    def __str__(self) -> str:
        return f"{round(self.due * 1000)}.{self.token:016x}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The receipt whose str() is `text`. Raises ValueError for any other text."""
        try:
            due, token, id = text.split(".", 2)
            receipt = cls(id, int(due) / 1000, int(token, 16))
        except (ValueError, OverflowError):
            raise ValueError(f"{text!r} is no receipt") from None
        if str(receipt) != text:
            raise ValueError(f"{text!r} is no receipt")
        return receipt


class PendingMessage(NamedTuple):
    """A message that is still to come."""

    receipt: Receipt
    payload: bytes


class Location(NamedTuple):
    """Where the store holds a message that is due soon. For the fields see `Message`."""

    due: int
    position: int
    token: int
    failures: int = 0


class Message(NamedTuple):
    """A message as the store holds it.

    `due` is in milliseconds since the epoch. `name` is the id that the user chose; None if the user chose
    none. `position` is where the store holds the message; 0 where nobody reads it again. `failures` says how
    often its delivery has failed.
    """

    token: int
    due: int
    name: str | None
    payload: bytes
    position: int = 0
    failures: int = 0

    @property
    def id(self) -> str:
        return f"{self.token:016x}" if self.name is None else self.name

    @property
    def location(self) -> Location:
        return Location(self.due, self.position, self.token, self.failures)

    @property
    def receipt(self) -> Receipt:
        return Receipt(self.id, self.due / 1000, self.token)
