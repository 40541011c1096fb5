"""Which records are cancelled, as an instance knows it when it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from aiokafka.errors import KafkaTimeoutError  # type: ignore[import-untyped]  # has no types

from examples.delayed.cancellations import Cancellations
from purgatory import Purgatory

PARTITION = "cancelled-0"


@dataclass(frozen=True)
class Cancel:
    key: bytes | None
    offset: int


class Topic:
    """A topic with one partition, and both clients. `reading` and `answering` let them go on."""

    def __init__(self) -> None:
        self.looks = 0
        self.fails = False
        self.reading, self.answering = anyio.Event(), anyio.Event()
        self.reading.set()
        self.answering.set()
        self._cancels: list[Cancel] = []
        self._position = 0
        self._changed = anyio.Event()

    def cancel(self, *keys: bytes | None) -> None:
        self._cancels += [Cancel(key, len(self._cancels) + index) for index, key in enumerate(keys)]
        self._changed.set()

    def assign(self, partitions: Sequence[str]) -> None:
        assert partitions == [PARTITION]

    async def getmany(self, timeout_ms: int, max_records: int | None) -> dict[str, list[Cancel]]:
        if self._position == len(self._cancels):
            self._changed = anyio.Event()
            with anyio.move_on_after(timeout_ms / 1000):
                await self._changed.wait()
        await self.reading.wait()
        cancels = self._cancels[self._position :]
        self._position += len(cancels)
        return {PARTITION: cancels}

    async def position(self, partition: str) -> int:
        return self._position

    async def end_offsets(self, partitions: Sequence[str]) -> dict[str, int]:
        self.looks += 1
        end = len(self._cancels)
        await self.answering.wait()
        if self.fails:
            raise KafkaTimeoutError
        return {PARTITION: end}


class Asked(Cancellations):
    """`answers` has the answers to the questions of tasks."""

    def __init__(self, topic: Any, purgatory: Purgatory) -> None:
        super().__init__(topic, topic, [PARTITION], purgatory)
        self.answers: list[bool] = []

    async def ask(self) -> None:
        self.answers.append(await self.include("0-7"))


@asynccontextmanager
async def cancellations(topic: Topic) -> AsyncIterator[Asked]:
    async with Purgatory() as purgatory, anyio.create_task_group() as tasks:
        running = Asked(topic, purgatory)
        tasks.start_soon(running.read)
        yield running
        tasks.cancel_scope.cancel()


async def test_a_record_is_cancelled_when_its_id_is_in_the_topic() -> None:
    topic = Topic()
    async with cancellations(topic) as cancelled:
        topic.cancel(b"0-7", b"1-7")
        assert await cancelled.include("0-7")
        assert not await cancelled.include("0-70")


async def test_a_question_waits_until_all_is_read_that_was_acknowledged_before_it() -> None:
    topic = Topic()
    async with cancellations(topic) as cancelled, anyio.create_task_group() as tasks:
        assert not await cancelled.include("0-7")
        topic.reading = anyio.Event()
        topic.cancel(b"0-1", b"0-7")
        tasks.start_soon(cancelled.ask)
        await anyio.wait_all_tasks_blocked()
        assert cancelled.answers == []
        # What is acknowledged later holds up nothing.
        topic.cancel(*[b"0-8"] * 5)
        topic.reading.set()
    assert cancelled.answers == [True]


async def test_questions_during_a_look_at_the_end_share_the_next_look() -> None:
    topic = Topic()
    topic.answering = anyio.Event()
    async with cancellations(topic) as cancelled, anyio.create_task_group() as tasks:
        tasks.start_soon(cancelled.ask)
        await anyio.wait_all_tasks_blocked()
        # The first look does not see it.
        topic.reading = anyio.Event()
        topic.cancel(b"0-7")
        for _ in range(10):
            tasks.start_soon(cancelled.ask)
        await anyio.wait_all_tasks_blocked()
        topic.answering.set()
        await anyio.wait_all_tasks_blocked()
        assert (topic.looks, cancelled.answers) == (2, [False])
        topic.reading.set()
    assert cancelled.answers == [False] + [True] * 10


async def test_a_look_that_fails_fails_one_question_and_the_next_one_looks_again() -> None:
    topic = Topic()
    topic.fails = True
    async with cancellations(topic) as cancelled:
        topic.cancel(b"0-7")
        with pytest.raises(KafkaTimeoutError):
            await cancelled.include("0-7")
        topic.fails = False
        assert await cancelled.include("0-7")


@pytest.mark.parametrize("key", [None, b"", b"7", b"0-7\n", b"\xff-1"])
async def test_a_cancel_without_an_id_is_skipped(key: bytes | None, caplog: pytest.LogCaptureFixture) -> None:
    topic = Topic()
    async with cancellations(topic) as cancelled:
        topic.cancel(key, b"0-8")
        assert await cancelled.include("0-8")
    assert caplog.messages == ["cancel 0 has no id: its key must be the partition-offset of a record"]
