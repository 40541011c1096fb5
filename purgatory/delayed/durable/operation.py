"""An operation whose deadline survives a restart."""

from __future__ import annotations

import json
from collections.abc import Generator, Hashable
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

from purgatory._core.engine import reserve
from purgatory._core.operation import Operation
from purgatory._core.waiting import accompany, future_for, settled
from purgatory.delayed.message import Receipt
from purgatory.delayed_operation import DelayedOperation

R = TypeVar("R")

_LENGTH: Final = Struct("<I")


class DurableOperation(DelayedOperation[R]):
    """A delayed operation that comes back after a restart, with the time that is left.

    Subclass it as a `DelayedOperation`, give the class a `kind`, and override `payload`. Offer it with
    `DurableOperations.offer`. After a restart, the factory of that kind makes it again from the payload.

    `timeout` is a finite number of seconds, or ValueError is raised. While the process runs, it counts by the
    loop's clock. After a restart, the deadline is the one that the wall clock said at the offer.

    Other than with a `DelayedOperation`, cancelling the tasks that await it leaves it pending. A client that
    disconnects, or a service that stops, cancels no deadline. `cancel` withdraws it.
    """

    __slots__ = ("_over", "_receipt", "_registry")

    kind: ClassVar[str]
    """The name of this kind of operation on the disk. Do not change it while operations are pending."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A class without a payload is a base of others.
        if cls.payload is not DurableOperation.payload and not isinstance(getattr(cls, "kind", None), str):
            raise TypeError(f'{cls.__name__} needs a kind, its name on the disk: write `kind = "payment"`')

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        reserve(self)
        if self.timeout is None:
            raise ValueError(f"a durable operation needs a finite timeout, not {timeout!r}")
        # What it is registered with, set when it is offered.
        self._registry: object = None
        # The receipt of its message, once that is on the disk.
        self._receipt: Receipt | None = None
        # Whether it has ended for good. Then its message is not needed any more.
        self._over = False

    def payload(self) -> bytes:
        """Override: what the factory of this kind needs to make the operation again."""
        raise NotImplementedError(f"{type(self).__name__} must override payload()")

    def __await__(self) -> Generator[Any, None, R]:
        """The result, as soon as there is one. Raises as awaiting a `DelayedOperation` does."""
        if not settled(self):
            # A companion: when its task is cancelled, the operation goes on.
            waiter = future_for(self)
            accompany(self, waiter)
            try:
                yield from waiter
            finally:
                self._waiters.pop(waiter, None)
        outcome: R = Operation.result(self)
        return outcome


class Record(NamedTuple):
    """A durable operation as it is on the disk. `deadline` is in seconds since the epoch.

    `replaces` is the id of the message in whose place this one has come, because the operation was
    rescheduled. A crash may leave both on the disk.
    """

    kind: str
    keys: tuple[Hashable, ...]
    deadline: float
    payload: bytes
    replaces: str | None = None

    def encoded(self) -> bytes:
        """The payload of the message: a length, a header in JSON, and the operation's own payload.

        Raises TypeError for keys that do not come back from JSON as they were.
        """
        fields = {"kind": self.kind, "keys": self.keys, "deadline": self.deadline}
        if self.replaces is not None:
            fields["replaces"] = self.replaces
        try:
            header = json.dumps(fields).encode()
            same = _as_tuples(json.loads(header)["keys"]) == self.keys
        except (TypeError, ValueError):
            same = False
        if not same:
            words = "str, int, float, bool, None, or tuples of these"
            raise TypeError(f"the keys of a durable operation must be {words}, not {self.keys!r}")
        return _LENGTH.pack(len(header)) + header + self.payload

    @classmethod
    def parse(cls, body: bytes) -> Self:
        (length,) = _LENGTH.unpack_from(body)
        start = _LENGTH.size + length
        header = json.loads(body[_LENGTH.size : start])
        keys = _as_tuples(header["keys"])
        return cls(header["kind"], keys, header["deadline"], body[start:], header.get("replaces"))


def _as_tuples(value: Any) -> Any:
    """JSON has lists for tuples, and lists are no keys."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
