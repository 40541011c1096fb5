"""The dashboard's ASGI app, inside a host application, without a browser."""

from __future__ import annotations

import re
from dataclasses import fields
from html import escape
from html.parser import HTMLParser

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.types import Scope

from purgatory import Purgatory
from purgatory._figures.messages import MESSAGE_FIGURES
from purgatory._figures.operations import FIGURES
from purgatory._figures.relay import RELAY_FIGURES
from purgatory.observer import OUTCOMES
from purgatory.testing import VirtualTimeLoop
from purgatory.web.dashboard import Authorize, dashboard
from purgatory.web.dashboard.application import FILES, HEADERS
from tests.web.dashboard.viewer import client, data

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
    # Besides these, a card has a link to the part of the page that shows more.
    links = [link for link in links if not link.startswith("#")]
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


async def test_each_figure_explains_itself(viewer: httpx.AsyncClient) -> None:
    page = (await viewer.get("")).text
    figures = [*FIGURES, *MESSAGE_FIGURES, *RELAY_FIGURES]
    for figure in figures:
        assert f">{figure.title}</" in page
        assert f">{escape(figure.explanation)}</span>" in page
    explained = re.findall(r'aria-describedby="(about-.*?)"', page)
    # The page adds the age of the oldest operation, and the worst stall.
    assert len(set(explained)) == len(explained) == len(figures) + 2
    for about in explained:
        assert page.count(f'class="about" id="{about}"') == 1


async def test_each_outcome_has_a_colour(viewer: httpx.AsyncClient) -> None:
    style = (await viewer.get("dashboard.css")).text
    for outcome in OUTCOMES:
        assert f".bar.{outcome} {{" in style
        assert f"i.{outcome}, " in style


@pytest.mark.parametrize("path", ["", "data", "dashboard.js", "nothing"])
async def test_every_response_has_the_strict_headers(viewer: httpx.AsyncClient, path: str) -> None:
    headers = (await viewer.get(path)).headers
    strict = HEADERS | ({"Cache-Control": "no-store"} if path == "data" else {})
    assert strict.items() <= {name.title(): value for name, value in headers.items()}.items()
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
        assert (await viewer.get("/data")).json()["name"] == "purgatory"


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


def test_two_purgatories_of_the_same_name_are_refused() -> None:
    with pytest.raises(ValueError, match="2 purgatories have the name 'same': give each a name of its own"):
        dashboard(Purgatory("same"), Purgatory("other"), Purgatory("same"))


async def test_a_browser_that_has_a_file_already_gets_no_second_copy(viewer: httpx.AsyncClient) -> None:
    first = await viewer.get("dashboard.js")
    known = {"If-None-Match": f'"another", {first.headers["etag"]}'}
    again = await viewer.get("dashboard.js", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert HEADERS.items() <= {name.title(): value for name, value in again.headers.items()}.items()
    assert (await viewer.get("dashboard.css", headers=known)).status_code == 200


async def test_files_and_data_are_compressed(viewer: httpx.AsyncClient) -> None:
    for path in ("dashboard.js", "data"):
        response = await viewer.get(path)
        assert response.headers["content-encoding"] == "gzip"
        assert int(response.headers["content-length"]) < len(response.content) / 2


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
        assert (await data(viewer))["name"] == "purgatory"


async def test_the_host_may_raise_a_response_of_its_own(
    virtual_time: VirtualTimeLoop, purgatory: Purgatory
) -> None:
    def require_login(scope: Scope) -> bool:
        raise HTTPException(401, headers={"WWW-Authenticate": "Basic"})

    async with client(purgatory, authorize=require_login) as viewer:
        response = await viewer.get("")
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Basic")
