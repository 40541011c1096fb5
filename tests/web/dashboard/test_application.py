"""The dashboard's ASGI app, inside a host application, without a browser."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, fields
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
from purgatory.statistics import OUTCOMES
from purgatory.testing import VirtualTimeLoop
from purgatory.web.dashboard import Authorize, audience, dashboard
from purgatory.web.dashboard.application import FILES, HEADERS
from tests.operations import Gate, a_few_turns


def client(*purgatories: Purgatory, authorize: Authorize | None = None) -> httpx.AsyncClient:
    """A client of a host application that has a dashboard of `purgatories` under /inside."""
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


async def test_the_page_requests_only_files_that_are_served(viewer: httpx.AsyncClient) -> None:
    links: list[str] = []

    class LinkParser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value or "" for name, value in attrs if name in ("src", "href"))
            assert not [name for name, _ in attrs if name == "style" or name.startswith("on")]

    LinkParser().feed((await viewer.get("")).text)
    assert len(links) == 3
    scripts = [file for file, media_type in FILES.values() if media_type == "text/javascript"]
    for script in scripts:
        links += re.findall(r'from "\./(.*?)"', (await viewer.get(script)).text)
    assert set(links) >= set(scripts)
    for link in links:
        assert (await viewer.get(link)).status_code == 200


async def test_the_page_has_an_element_for_each_field_of_the_statistics(
    viewer: httpx.AsyncClient, purgatory: Purgatory
) -> None:
    page = (await viewer.get("")).text
    for field in fields(purgatory.statistics()):
        assert page.count(f'id="{field.name}"') == 1


async def test_each_outcome_has_a_colour(viewer: httpx.AsyncClient) -> None:
    style = (await viewer.get("dashboard.css")).text
    for outcome in OUTCOMES:
        assert f".bar.{outcome} {{" in style
        assert f"#figures .{outcome} dd {{" in style


@pytest.mark.parametrize("path", ["", "data", "dashboard.js", "nothing"])
async def test_every_response_has_the_strict_headers(viewer: httpx.AsyncClient, path: str) -> None:
    headers = (await viewer.get(path)).headers
    assert HEADERS.items() <= {name.title(): value for name, value in headers.items()}.items()
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_the_address_without_its_slash_redirects_to_the_page(viewer: httpx.AsyncClient) -> None:
    response = await viewer.get("http://host/inside", follow_redirects=True)
    assert (response.status_code, response.url.path) == (200, "/inside/")


async def test_it_runs_without_a_host_application(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    transport = httpx.ASGITransport(dashboard(purgatory))
    async with httpx.AsyncClient(transport=transport, base_url="http://host") as viewer:
        assert (await viewer.get("/")).status_code == 200
        assert (await viewer.get("/data")).json()["tabs"] == [{"name": "purgatory", "pending": 0}]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["", "data", "dashboard.css"])
async def test_other_methods_than_get_and_head_are_refused(
    viewer: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await viewer.request(method, path)
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_a_dashboard_without_a_purgatory_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one purgatory"):
        dashboard()


# Authorization


async def has_password(scope: Scope) -> bool:
    return (b"authorization", b"password") in scope["headers"]


@pytest.mark.parametrize("authorize", [lambda scope: False, has_password], ids=["sync", "async"])
async def test_an_unauthorized_client_receives_403_for_every_path(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory, authorize: Authorize
) -> None:
    async with client(purgatory, authorize=authorize) as viewer:
        for path in ("", "data", "dashboard.js", "nothing"):
            response = await viewer.get(path)
            assert (response.status_code, response.text) == (403, "Forbidden")


async def test_an_authorized_client_receives_page_and_data(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    async with client(purgatory, authorize=has_password) as viewer:
        viewer.headers["authorization"] = "password"
        assert (await viewer.get("")).status_code == 200
        assert (await data(viewer))["version"] == 1


async def test_the_host_may_raise_a_response_of_its_own(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    def require_login(scope: Scope) -> bool:
        raise HTTPException(401, headers={"WWW-Authenticate": "Basic"})

    async with client(purgatory, authorize=require_login) as viewer:
        response = await viewer.get("")
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Basic")


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
