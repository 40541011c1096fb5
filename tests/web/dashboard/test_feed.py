"""The feed of snapshots: their data, and the long poll for the next one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import asdict
from types import FrameType
from typing import Any

import httpx
import pytest
from starlette.types import Message

from purgatory import Purgatory
from purgatory._figures.stall import PERIOD
from purgatory.testing import VirtualTimeLoop
from purgatory.web.dashboard import audience, dashboard
from purgatory.web.dashboard.feed import LINGER
from purgatory.web.dashboard.process import this_process
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
        "tries": None,
    }
    assert (seen["name"], seen["process"]) == ("purgatory", asdict(this_process()))
    assert abs(seen["time"] - time.time()) < 60


async def test_totals_count_since_the_purgatory_was_opened(virtual_time: VirtualTimeLoop) -> None:
    virtual_time.jump(2)
    async with Purgatory("late") as late, client(late) as viewer:
        await asyncio.sleep(3)
        seen = await data(viewer)
    assert (seen["since"], seen["now"]) == (2.0, 5.0)


async def test_a_purgatory_that_was_not_opened_can_be_shown(virtual_time: VirtualTimeLoop) -> None:
    async with client(Purgatory("new")) as viewer:
        seen = await data(viewer)
    assert [(each["name"], each["pending"]) for each in seen["health"]] == [("new", 0)]
    assert seen["since"] is None


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


async def test_each_of_several_purgatories_is_shown_by_its_name(virtual_time: VirtualTimeLoop) -> None:
    names = ("first", "<b>&?=%20/\N{SNOWMAN}", "")
    async with AsyncExitStack() as stack:
        purgatories = [await stack.enter_async_context(Purgatory(name)) for name in names]
        viewer = await stack.enter_async_context(client(*purgatories))
        purgatories[1].try_complete_else_watch(Gate(), ["a"])
        assert (await data(viewer))["name"] == "first"
        for name, pending in zip(names, [0, 1, 0], strict=True):
            seen = await data(viewer, purgatory=name)
            assert (seen["name"], seen["statistics"]["pending"]) == (name, pending)
            assert [each["pending"] for each in seen["health"]] == [0, 1, 0]


@pytest.mark.parametrize("name", ["9", "0", "Purgatory", ""])
async def test_an_unknown_purgatory_is_not_found_and_the_answer_names_those_there_are(
    viewer: httpx.AsyncClient, name: str
) -> None:
    response = await viewer.get("data", params={"purgatory": name})
    assert (response.status_code, response.json()) == (404, {"purgatories": ["purgatory"]})


# The search


async def test_a_viewer_that_searches_gets_what_was_found_with_the_snapshot(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    for key in ("a", "b"):
        purgatory.try_complete_else_watch(Gate(), [key])
    seen = await data(viewer, key="b", name="gate")
    assert [operation["keys"] for operation in seen["found"]["operations"]] == [["'b'"]]
    assert (seen["found"]["state"], seen["found"]["count"]) == ("pending", 1)
    assert len(seen["pending_sample"]["oldest"]) == 2
    assert "found" not in await data(viewer)
    # Until the next snapshot, the answer to the same search is the same.
    purgatory.cancel_for_key("b")
    assert await data(viewer, key="b", name="gate") == seen
    later = await data(viewer, key="b", name="gate", version=seen["version"])
    assert later["found"]["operations"] == []


@pytest.mark.parametrize("parameters", [{"state": "new"}, {"key": "x" * 201}])
async def test_a_search_for_nonsense_is_refused(
    viewer: httpx.AsyncClient, parameters: dict[str, str]
) -> None:
    response = await viewer.get("data", params=parameters)
    assert response.status_code == 400
    assert "state must be one of" in response.text or "200 characters" in response.text


# The long poll


async def test_a_viewer_with_the_latest_snapshot_gets_the_next_one_a_second_later(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    start = virtual_time.time()
    seen = await data(viewer)
    for number in range(1, 4):
        before = seen["version"]
        seen = await data(viewer, version=before)
        assert seen["version"] != before
        assert virtual_time.time() - start == pytest.approx(number, abs=0.01)


@pytest.mark.parametrize("version", ["", "0", "another-1.1"])
async def test_a_viewer_with_another_version_gets_the_latest_snapshot_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, version: str
) -> None:
    seen = await data(viewer)
    start = virtual_time.time()
    assert await data(viewer, version=version) == seen
    assert virtual_time.time() == start


async def test_a_viewer_of_another_process_gets_the_latest_snapshot_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = await data(viewer)
    # The same number, of a process that was forked from the same one.
    monkeypatch.setattr(os, "getpid", lambda: 1)
    async with client(Purgatory("purgatory")) as other:
        start = virtual_time.time()
        seen = await data(other, version=elsewhere["version"])
        assert seen["process"]["instance"] != elsewhere["process"]["instance"]
        assert (await data(other, version=elsewhere["version"]))["version"] == seen["version"]
        assert virtual_time.time() == start


async def test_a_viewer_that_comes_late_gets_a_new_snapshot_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    seen = await data(viewer)
    await asyncio.sleep(10)
    start = virtual_time.time()
    assert (await data(viewer, version=seen["version"]))["version"] != seen["version"]
    assert virtual_time.time() == start


async def test_many_viewers_share_one_snapshot_a_second(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    version = (await data(viewer))["version"]
    for _ in range(2):
        seen = await asyncio.gather(*(data(viewer, version=version) for _ in range(50)))
        (latest,) = {each["version"] for each in seen}
        assert latest != version
        version = latest


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
            "query_string": query,
            "headers": [],
        }
        await app(scope, receive, send)

    query = b""
    await view(disconnections[0])
    query = f"version={json.loads(sent.pop()['body'])['version']}".encode()
    start = virtual_time.time()
    views = [asyncio.create_task(view(disconnected)) for disconnected in disconnections]
    await a_few_turns()
    for disconnected, task in zip(disconnections, views, strict=True):
        assert not task.done()
        disconnected.set()
        await task
    assert virtual_time.time() == start
    assert asyncio.all_tasks() == tasks
    # The measurement of stalls goes on for a while, for a viewer that looks now and then.
    assert virtual_time.idle_for() is not None
    await asyncio.sleep(LINGER + PERIOD)
    # The purgatory on the page has no timer armed, either.
    assert virtual_time.idle_for() is None


async def test_a_cancelled_poll_leaves_no_task_behind(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    version = (await data(viewer))["version"]
    tasks = asyncio.all_tasks()
    poll = asyncio.create_task(data(viewer, version=version))
    await a_few_turns()
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    assert asyncio.all_tasks() == tasks


async def test_too_many_viewers_receive_503_with_retry_after(
    viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "MAX_VIEWERS", 2)
    version = (await data(viewer))["version"]
    polls = [asyncio.create_task(data(viewer, version=version)) for _ in range(2)]
    await a_few_turns()
    refused = await viewer.get("data", params={"version": version})
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    first, second = [(await poll)["version"] for poll in polls]
    assert first == second != version


async def test_stalls_are_measured_for_a_viewer_that_never_waits(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    """A viewer of several processes has the snapshot of another one each time. It gets an answer at once."""
    for _ in range(3):
        seen = await data(viewer, version="another")
        await asyncio.sleep(LINGER / 2)
    assert None not in seen["stalls"][-9:]


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
