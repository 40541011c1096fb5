"""The feed of snapshots: their data, and the long poll for the next one."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from types import FrameType
from typing import Any

import httpx
import pytest
from starlette.types import Message

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from purgatory.web.dashboard import audience, dashboard
from tests.operations import Gate, a_few_turns
from tests.web.dashboard.viewer import client, data

# The data


async def test_a_snapshot_agrees_with_the_purgatory(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    for number in range(50):
        purgatory.try_complete_else_watch(Gate(number % 7), [number % 5, "all"])
    for gate in purgatory.operations()[::5]:
        gate.cancel()
    await asyncio.sleep(3)
    seen = await data(viewer)
    assert seen["statistics"] == asdict(purgatory.statistics())
    assert seen["now"] == virtual_time.time()
    assert sum(load for level in seen["wheel"]["levels"] for _, load in level) == seen["wheel"]["tasks"]
    assert seen["pending_sample"]["hottest"][0] == {
        "key": "'all'",
        "watchers": len(purgatory.operations("all")),
        "more": False,
    }


async def test_a_purgatory_that_was_not_opened_can_be_shown(virtual_time: VirtualTimeLoop) -> None:
    async with client(Purgatory("new")) as viewer:
        seen = await data(viewer)
    assert seen["tabs"] == [{"name": "new", "pending": 0}]


async def test_operations_older_than_the_dashboard_are_counted_and_the_rates_leave_them_out(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    before = purgatory.try_complete_else_watch(Gate(), ["a"])
    async with client(purgatory) as viewer:
        purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
        before.opened = True
        purgatory.check_and_complete("a")
        await asyncio.sleep(1)
        seen = await data(viewer)
    assert seen["statistics"]["completed"] == 2
    assert sum(seen["rates"]["ended"]["completed"]) == 1


@pytest.mark.parametrize("key", ["\ud800", "\x00", "</script>", float("nan"), "\u2028"], ids=repr)
async def test_the_data_is_valid_json_with_any_key(
    viewer: httpx.AsyncClient, purgatory: Purgatory, key: object
) -> None:
    purgatory.try_complete_else_watch(Gate(float("inf")), [key])

    def reject(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (await viewer.get("data")).content.decode("ascii")
    assert json.loads(text, parse_constant=reject)["pending_sample"]["hottest"][0]["key"] == repr(key)


async def test_each_of_several_purgatories_is_shown_by_its_number(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory("first") as first, Purgatory("second") as second, client(first, second) as viewer:
        second.try_complete_else_watch(Gate(), ["a"])
        for number, pending in enumerate([0, 1]):
            seen = await data(viewer, purgatory=number)
            assert seen["statistics"]["pending"] == pending
            assert seen["tabs"] == [{"name": "first", "pending": 0}, {"name": "second", "pending": 1}]


@pytest.mark.parametrize("number", ["-1", "1", "99999999999999999999"])
async def test_an_unknown_purgatory_is_not_found(viewer: httpx.AsyncClient, number: str) -> None:
    assert (await viewer.get(f"data?purgatory={number}")).status_code == 404


@pytest.mark.parametrize("name", ["purgatory", "version"])
@pytest.mark.parametrize("number", ["", "one", "1.5", "1e308", "nan", "9" * 5_000])
async def test_a_parameter_that_is_no_whole_number_is_refused(
    viewer: httpx.AsyncClient, name: str, number: str
) -> None:
    response = await viewer.get("data", params={name: number})
    assert (response.status_code, response.text) == (400, f"{name} must be a whole number")


# The long poll


async def test_a_viewer_with_the_latest_snapshot_gets_the_next_one_a_second_later(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    start = virtual_time.time()
    seen = await data(viewer)
    for number in range(2, 5):
        seen = await data(viewer, version=seen["version"])
        assert seen["version"] == number
        assert virtual_time.time() - start == pytest.approx(number - 1, abs=0.01)


@pytest.mark.parametrize("version", [0, 7, -1], ids=["older", "of another server", "negative"])
async def test_a_viewer_with_another_version_gets_the_latest_snapshot_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, version: int
) -> None:
    await data(viewer)
    start = virtual_time.time()
    assert (await data(viewer, version=version))["version"] == 1
    assert virtual_time.time() == start


async def test_a_viewer_that_comes_late_gets_a_new_snapshot_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    await data(viewer)
    await asyncio.sleep(10)
    start = virtual_time.time()
    assert (await data(viewer, version=1))["version"] == 2
    assert virtual_time.time() == start


async def test_many_viewers_share_one_snapshot_a_second(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    await data(viewer)
    for expected in (2, 3):
        seen = await asyncio.gather(*(data(viewer, version=expected - 1) for _ in range(50)))
        assert [each["version"] for each in seen] == [expected] * 50


async def test_viewing_does_not_change_the_statistics_on_the_page(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    before = purgatory.statistics()
    poll = asyncio.create_task(data(viewer, version=(await data(viewer))["version"]))
    await a_few_turns()
    assert purgatory.statistics() == before
    assert (await poll)["statistics"] == asdict(before)


async def test_a_poll_ends_when_its_viewer_disconnects_and_nothing_runs_without_viewers(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    app = dashboard(purgatory)
    tasks = asyncio.all_tasks()
    disconnections = [asyncio.Event() for _ in range(2)]
    sent: list[Message] = []

    async def view(disconnected: asyncio.Event) -> None:
        async def receive() -> Message:
            await disconnected.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/data",
            "query_string": b"version=1",
            "headers": [],
        }
        await app(scope, receive, send)

    await view(disconnections[0])
    assert json.loads(sent.pop()["body"])["version"] == 1
    start = virtual_time.time()
    views = [asyncio.create_task(view(disconnected)) for disconnected in disconnections]
    await a_few_turns()
    for disconnected, task in zip(disconnections, views, strict=True):
        assert not task.done()
        disconnected.set()
        await task
    assert virtual_time.time() == start
    assert asyncio.all_tasks() == tasks
    await asyncio.sleep(0.1)
    # The purgatory on the page has no timer armed, either.
    assert virtual_time.idle_for() is None


async def test_a_cancelled_poll_leaves_no_task_behind(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    await data(viewer)
    tasks = asyncio.all_tasks()
    poll = asyncio.create_task(data(viewer, version=1))
    await a_few_turns()
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    assert asyncio.all_tasks() == tasks


async def test_too_many_viewers_receive_503_with_retry_after(
    viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "MAX_VIEWERS", 2)
    await data(viewer)
    polls = [asyncio.create_task(data(viewer, version=1)) for _ in range(2)]
    await a_few_turns()
    refused = await viewer.get("data?version=1")
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert [(await poll)["version"] for poll in polls] == [2, 2]


async def test_stalls_are_measured_while_a_viewer_waits(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    seen = await data(viewer)
    assert seen["stalls"] == [None] * 60
    for _ in range(3):
        seen = await data(viewer, version=seen["version"])
    assert [late is not None for late in seen["stalls"][-2:]] == [True, True]


async def test_the_cost_of_a_snapshot_is_bounded(viewer: httpx.AsyncClient, purgatory: Purgatory) -> None:
    """By the lines of Python that run. The lines of a compiled core are not seen, but all others are."""
    for number in range(30_000):
        gate = Gate(10 + number % 20_000 / 1_000)
        purgatory.try_complete_else_watch(gate, [number % 3_000, "all"])
    lines_run = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines_run
        lines_run += event == "line"
        return count

    tracer = sys.gettrace()
    sys.settrace(count)
    try:
        await data(viewer)
    finally:
        sys.settrace(tracer)
    # The limit is the same with a million operations. Reading each of these 30,000 takes several times as
    # many lines.
    assert lines_run < 70_000
