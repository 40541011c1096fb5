"""The purgatories that Kafka has had, written in Python, under load."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from benchmarks.designs import kafka_08, kafka_purgatory
from benchmarks.load.subject import Ends, Subject


class Kafka08Request(kafka_08.DelayedRequest):
    """A request with a condition of its own."""

    __slots__ = ("number", "ready")

    def __init__(self, keys: tuple[int, ...], delay: float, number: int) -> None:
        super().__init__(keys, delay)
        self.number = number
        self.ready = False


class Kafka08Purgatory(kafka_08.RequestPurgatory[Kafka08Request]):
    """With a way to complete one request.

    Kafka 0.8 completes what `update` finds in walking over all requests of a key. The load test has all of
    them on the same keys, and completes single ones, which later versions can do: so does the test of the
    design note with the older design.
    """

    def __init__(self, ends: Ends) -> None:
        super().__init__(asyncio.get_running_loop())
        self.ends = ends

    def check_satisfied(self, request: Kafka08Request) -> bool:
        return request.ready

    def expire(self, request: Kafka08Request) -> None:
        self.ends.end(request.number)
        self.ends.expire(request.number)

    def complete(self, request: Kafka08Request) -> None:
        """Unless it has expired."""
        if not request.satisfied:
            request.satisfied = True
            self.ends.end(request.number)


class Kafka08Subject(Subject[Kafka08Request]):
    """The purgatory of Kafka 0.8, purged whenever it holds 1,000 entries."""

    def __init__(self, ends: Ends, timeout: float, keys: int) -> None:
        super().__init__(ends, timeout, keys)
        self.purgatory = Kafka08Purgatory(ends)

    async def __aenter__(self) -> Self:
        self.purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.purgatory.close()

    def offer(self, number: int) -> Kafka08Request:
        request = Kafka08Request(self.keys, self.timeout, number)
        self.purgatory.check_and_maybe_watch(request)
        return request

    def complete(self, request: Kafka08Request) -> None:
        request.ready = True
        self.purgatory.complete(request)

    @property
    def held(self) -> int:
        return self.purgatory.watched()


class KafkaOperation(kafka_purgatory.DelayedOperation):
    """An operation with a condition of its own."""

    __slots__ = ("ends", "number", "ready")

    def __init__(self, delay: float, number: int, ends: Ends) -> None:
        super().__init__(delay)
        self.number = number
        self.ends = ends
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.ends.end(self.number)

    def on_expiration(self) -> None:
        self.ends.expire(self.number)


class KafkaSubject(Subject[KafkaOperation]):
    """Kafka's present purgatory, on hierarchical timing wheels, purged every 1,000 operations."""

    def __init__(self, ends: Ends, timeout: float, keys: int) -> None:
        super().__init__(ends, timeout, keys)
        self.purgatory = kafka_purgatory.DelayedOperationPurgatory(asyncio.get_running_loop())

    async def __aenter__(self) -> Self:
        self.purgatory.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.purgatory.close()

    def offer(self, number: int) -> KafkaOperation:
        operation = KafkaOperation(self.timeout, number, self.ends)
        self.purgatory.try_complete_else_watch(operation, self.keys)
        return operation

    def complete(self, request: KafkaOperation) -> None:
        request.ready = True
        request.force_complete()

    @property
    def held(self) -> int:
        return self.purgatory.watched()
