"""The dashboard as a host sees it, and a viewer without a browser."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from html.parser import HTMLParser
from types import FrameType
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.types import Message, Scope

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from purgatory.web.dashboard import Authorize, audience, dashboard
from purgatory.web.dashboard.application import FILES, HEADERS
from tests.operations import Gate, a_few_turns


def client(*purgatories: Purgatory, authorize: Authorize | None = None) -> httpx.AsyncClient:
    """Somebody who looks at them, by way of a host that has the dashboard under /inside."""
    app = Starlette(routes=[Mount("/inside", dashboard(*purgatories, authorize=authorize))])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host/inside/")


async def data(viewer: httpx.AsyncClient, **parameters: int) -> dict[str, Any]:
    response = await viewer.get("data", params=parameters)
    assert response.status_code == 200
    return response.json()  # type: ignore[no-any-return]  # JSON


@pytest_asyncio.fixture
async def viewer(virtual_time: VirtualTimeLoop, purgatory: Purgatory) -> AsyncIterator[httpx.AsyncClient]:
    async with client(purgatory) as viewer:
        yield viewer


# The files


@pytest.mark.parametrize(("path", "file"), FILES.items())
async def test_each_file_is_served_with_its_type(
    viewer: httpx.AsyncClient, path: str, file: tuple[str, str]
) -> None:
    response = await viewer.get(path[1:])
    assert response.status_code == 200
    assert response.headers["content-type"].partition(";")[0] == file[1]
    assert len(response.content) > 100
    assert (await viewer.head(path[1:])).content == b""


async def test_the_page_asks_for_nothing_but_files_that_are_there(viewer: httpx.AsyncClient) -> None:
    wanted: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            wanted.extend(value or "" for name, value in attrs if name in ("src", "href"))
            assert not [name for name, _ in attrs if name == "style" or name.startswith("on")]

    Links().feed((await viewer.get("")).text)
    assert len(wanted) == 3
    for link in wanted:
        assert (await viewer.get(link)).status_code == 200


@pytest.mark.parametrize("path", ["", "data", "dashboard.js", "nothing"])
async def test_every_answer_forbids_what_the_page_does_not_need(viewer: httpx.AsyncClient, path: str) -> None:
    headers = (await viewer.get(path)).headers
    assert HEADERS.items() <= {name.title(): value for name, value in headers.items()}.items()
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_without_its_slash_the_address_leads_to_the_page(viewer: httpx.AsyncClient) -> None:
    response = await viewer.get("http://host/inside", follow_redirects=True)
    assert (response.status_code, response.url.path) == (200, "/inside/")


async def test_it_can_be_the_host_itself(virtual_time: VirtualTimeLoop, purgatory: Purgatory) -> None:
    transport = httpx.ASGITransport(dashboard(purgatory))
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as viewer:
        assert (await viewer.get("/")).status_code == 200
        assert (await viewer.get("/data")).json()["tabs"] == [{"name": "purgatory", "pending": 0}]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "data", "dashboard.css"])
async def test_nothing_can_be_changed(viewer: httpx.AsyncClient, method: str, path: str) -> None:
    response = await viewer.request(method, path)
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_without_a_purgatory_there_is_nothing_to_show() -> None:
    with pytest.raises(ValueError, match="needs a purgatory"):
        dashboard()


# Who may look


async def yes(scope: Scope) -> bool:
    return (b"authorization", b"let me in") in scope["headers"]


@pytest.mark.parametrize("authorize", [lambda scope: False, yes], ids=["sync", "async"])
async def test_whom_the_host_does_not_let_in_sees_nothing(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory, authorize: Authorize
) -> None:
    async with client(purgatory, authorize=authorize) as viewer:
        for path in ("", "data", "dashboard.js", "nothing"):
            response = await viewer.get(path)
            assert (response.status_code, response.text) == (403, "Forbidden")


async def test_whom_the_host_lets_in_sees_it(virtual_time: VirtualTimeLoop, purgatory: Purgatory) -> None:
    async with client(purgatory, authorize=yes) as viewer:
        viewer.headers["authorization"] = "let me in"
        assert (await viewer.get("")).status_code == 200
        assert (await data(viewer))["version"] == 1


async def test_the_host_may_answer_in_its_own_way(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    def who_are_you(scope: Scope) -> bool:
        raise HTTPException(401, headers={"WWW-Authenticate": "Basic"})

    async with client(purgatory, authorize=who_are_you) as viewer:
        response = await viewer.get("")
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Basic")


# The data


async def test_the_figures_are_those_of_statistics(
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


async def test_a_purgatory_that_was_not_opened_can_be_looked_at(virtual_time: VirtualTimeLoop) -> None:
    async with client(Purgatory("new")) as viewer:
        seen = await data(viewer)
    assert seen["tabs"] == [{"name": "new", "pending": 0}]


async def test_what_came_before_the_dashboard_is_shown_and_what_ends_later_is_recorded(
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
    assert sum(seen["rates"]["completed"]) == 1


@pytest.mark.parametrize("key", ["\ud800", "\x00", "</script>", float("nan"), "\u2028"], ids=repr)
async def test_whatever_a_key_is_the_data_is_json(
    viewer: httpx.AsyncClient, purgatory: Purgatory, key: object
) -> None:
    purgatory.try_complete_else_watch(Gate(float("inf")), [key])

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    text = (await viewer.get("data")).content.decode("ascii")
    assert json.loads(text, parse_constant=refuse)["pending_sample"]["hottest"][0]["key"] == repr(key)


async def test_of_several_purgatories_each_is_shown_by_its_number(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory("first") as first, Purgatory("second") as second, client(first, second) as viewer:
        second.try_complete_else_watch(Gate(), ["a"])
        for number, pending in enumerate([0, 1]):
            seen = await data(viewer, purgatory=number)
            assert seen["statistics"]["pending"] == pending
            assert seen["tabs"] == [{"name": "first", "pending": 0}, {"name": "second", "pending": 1}]


@pytest.mark.parametrize("number", ["-1", "1", "99999999999999999999"])
async def test_one_that_is_not_there_is_not_found(viewer: httpx.AsyncClient, number: str) -> None:
    assert (await viewer.get(f"data?purgatory={number}")).status_code == 404


@pytest.mark.parametrize("name", ["purgatory", "version"])
@pytest.mark.parametrize("number", ["", "one", "1.5", "1e308", "nan", "9" * 5_000])
async def test_what_is_no_whole_number_is_refused(viewer: httpx.AsyncClient, name: str, number: str) -> None:
    response = await viewer.get("data", params={name: number})
    assert (response.status_code, response.text) == (400, f"{name} must be a whole number")


# The long poll


async def test_who_has_the_latest_waits_for_the_next_which_comes_once_a_second(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    start = virtual_time.time()
    seen = await data(viewer)
    for number in range(2, 5):
        seen = await data(viewer, version=seen["version"])
        assert seen["version"] == number
        assert virtual_time.time() - start == pytest.approx(number - 1, abs=0.01)


@pytest.mark.parametrize("version", [0, 7, -1], ids=["older", "of another server", "negative"])
async def test_who_has_another_gets_the_latest_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, version: int
) -> None:
    await data(viewer)
    start = virtual_time.time()
    assert (await data(viewer, version=version))["version"] == 1
    assert virtual_time.time() == start


async def test_who_comes_late_gets_a_new_one_at_once(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    await data(viewer)
    await asyncio.sleep(10)
    start = virtual_time.time()
    assert (await data(viewer, version=1))["version"] == 2
    assert virtual_time.time() == start


async def test_however_many_look_there_is_one_snapshot_a_second(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    await data(viewer)
    for expected in (2, 3):
        seen = await asyncio.gather(*(data(viewer, version=expected - 1) for _ in range(50)))
        assert [each["version"] for each in seen] == [expected] * 50


async def test_looking_leaves_no_trace_in_what_is_looked_at(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    before = purgatory.statistics()
    poll = asyncio.create_task(data(viewer, version=(await data(viewer))["version"]))
    await a_few_turns()
    assert purgatory.statistics() == before
    assert (await poll)["statistics"] == asdict(before)


async def test_a_viewer_that_leaves_is_let_go_at_once_and_when_nobody_looks_nothing_runs(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    app = dashboard(purgatory)
    tasks = asyncio.all_tasks()
    leaves = [asyncio.Event() for _ in range(2)]
    sent: list[Message] = []

    async def look(left: asyncio.Event) -> None:
        async def receive() -> Message:
            await left.wait()
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

    await look(leaves[0])
    assert json.loads(sent.pop()["body"])["version"] == 1
    start = virtual_time.time()
    looking = [asyncio.create_task(look(left)) for left in leaves]
    await a_few_turns()
    for left, task in zip(leaves, looking, strict=True):
        assert not task.done()
        left.set()
        await task
    assert virtual_time.time() == start
    assert asyncio.all_tasks() == tasks
    await asyncio.sleep(0.1)
    # Not even the purgatory that is looked at has anything to wait for.
    assert virtual_time.idle_for() is None


async def test_a_cancelled_look_leaves_nothing_behind(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    await data(viewer)
    tasks = asyncio.all_tasks()
    look = asyncio.create_task(data(viewer, version=1))
    await a_few_turns()
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert asyncio.all_tasks() == tasks


async def test_too_many_viewers_are_asked_to_come_again(
    viewer: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "MOST", 2)
    await data(viewer)
    looking = [asyncio.create_task(data(viewer, version=1)) for _ in range(2)]
    await a_few_turns()
    refused = await viewer.get("data?version=1")
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert [(await look)["version"] for look in looking] == [2, 2]


async def test_the_loop_is_watched_while_somebody_looks(
    viewer: httpx.AsyncClient, virtual_time: VirtualTimeLoop
) -> None:
    seen = await data(viewer)
    assert seen["stalls"] == [None] * 60
    for _ in range(3):
        seen = await data(viewer, version=seen["version"])
    assert [late is not None for late in seen["stalls"][-2:]] == [True, True]


async def test_a_snapshot_costs_a_bounded_number_of_steps_however_many_operations_there_are(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    """Counted in lines of Python; of a compiled core those are not seen, but all others are."""
    for number in range(30_000):
        gate = Gate(10 + number % 20_000 / 1_000)
        purgatory.try_complete_else_watch(gate, [number % 3_000, "all"])
    run = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal run
        run += event == "line"
        return count

    tracer = sys.gettrace()
    sys.settrace(count)
    try:
        await data(viewer)
    finally:
        sys.settrace(tracer)
    # And no more with a million operations. To look at each of these would take several times that.
    assert run < 70_000
