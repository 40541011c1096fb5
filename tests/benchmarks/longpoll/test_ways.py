"""Whatever the way, a poll waits for what is news to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from benchmarks.suites.longpoll.server import (
    SECTIONS,
    WAYS,
    Counts,
    InPurgatory,
    InPurgatoryUntilLeft,
    OnConditionUntilLeft,
    OnFuture,
    Topic,
    Way,
)
from purgatory.testing import VirtualTimeLoop
from purgatory.web import ClientDisconnected
from tests.operations import a_few_turns

every_way = pytest.mark.parametrize("way_type", WAYS.values())
ways_that_time_out = pytest.mark.parametrize(
    "way_type", [way for way in WAYS.values() if way is not OnFuture]
)
ways_that_notice = pytest.mark.parametrize("way_type", [InPurgatoryUntilLeft, OnConditionUntilLeft])
MakeWay = Callable[[], Way]


@asynccontextmanager
async def opened(make_way: MakeWay) -> AsyncIterator[Way]:
    way = make_way()
    try:
        yield way
    finally:
        if isinstance(way, InPurgatory):
            await way.polls.aclose()


class Connection:
    """A client's connection, as ASGI presents it."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self._asked = False

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request"}
        await self.left.wait()
        return {"type": "http.disconnect"}


class Polls:
    """Polls of one topic, by one way."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.counts = Counts()
        self.topic = Topic("news", self.counts)

    async def poll(self, client: str, offset: int = 0, connection: Connection | None = None) -> None:
        await self.way.wait(self.topic, client, offset, 60.0, (connection or Connection()).receive)

    async def append(self, value: str, to: str | None = None) -> None:
        self.topic.append(value, to)
        await self.way.notify(self.topic, to)


@every_way
async def test_a_record_for_everybody_wakes_everybody(
    way_type: MakeWay, virtual_time: VirtualTimeLoop
) -> None:
    async with opened(way_type) as way:
        polls = Polls(way)
        waiting = [asyncio.create_task(polls.poll(str(number))) for number in range(5)]
        await a_few_turns()
        assert not any(task.done() for task in waiting)
        await polls.append("record")
        await asyncio.gather(*waiting)
    assert virtual_time.time() == 0
    assert polls.topic.news("3", 0) == ["record"]


@every_way
async def test_a_record_for_one_client_is_answered_to_that_alone(
    way_type: MakeWay, virtual_time: VirtualTimeLoop
) -> None:
    async with opened(way_type) as way:
        polls = Polls(way)
        waiting = [asyncio.create_task(polls.poll(str(number))) for number in range(5)]
        await a_few_turns()
        looks = polls.counts.looks
        await polls.append("record", to="3")
        await waiting[3]
        await a_few_turns()
        assert [task.done() for task in waiting] == [False, False, False, True, False]
        # The polls that look whether the record is for them.
        expected = 1 if isinstance(way, InPurgatory) else 0 if isinstance(way, OnFuture) else 5
        assert polls.counts.looks - looks == expected
        assert [polls.topic.news(client, 0) for client in ("2", "3")] == [[], ["record"]]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    assert virtual_time.time() == 0


@ways_that_time_out
async def test_a_poll_waits_only_when_it_has_all_records(
    way_type: MakeWay, virtual_time: VirtualTimeLoop
) -> None:
    async with opened(way_type) as way:
        polls = Polls(way)
        await polls.append("first")
        await polls.append("second", to="3")
        await polls.poll("2", 0)
        await polls.poll("3", 1)
        assert virtual_time.time() == 0
        await polls.poll("2", 1)
    assert virtual_time.time() == pytest.approx(60, abs=0.01)


@ways_that_notice
async def test_a_client_that_leaves_leaves_nothing_behind(
    way_type: MakeWay, virtual_time: VirtualTimeLoop
) -> None:
    async with opened(way_type) as way:
        polls = Polls(way)
        connection = Connection()
        tasks = asyncio.all_tasks()
        waiting = asyncio.create_task(polls.poll("1", 0, connection))
        await a_few_turns()
        connection.left.set()
        with pytest.raises(ClientDisconnected):
            await waiting
        await a_few_turns()
        assert asyncio.all_tasks() == tasks
        if isinstance(way, InPurgatory):
            assert way.polls.statistics().cancelled == 1
    assert virtual_time.time() == 0


def test_each_section_sets_the_usual_way_beside_this_librarys() -> None:
    for ways in SECTIONS.values():
        assert [issubclass(way, InPurgatory) for way in ways.values()][:2] == [True, False]
