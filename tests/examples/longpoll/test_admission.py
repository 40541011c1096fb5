"""What a foreign page makes a browser send is refused, and what the service's own pages send is not."""

from __future__ import annotations

import socket

import httpx
import pytest

from examples.longpoll.application import application
from examples.longpoll.service import Service


async def status(service: Service, method: str = "GET", **headers: str) -> int:
    transport = httpx.ASGITransport(application(service, ["Chat.example.org"]))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        return (
            await client.request(method, "/presence/ada" if method != "GET" else "/", headers=headers)
        ).status_code


OWN = [
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1:8000",
    "192.0.2.1",
    "[::1]:8000",
    socket.gethostname(),
    "chat.example.org:443",
]


@pytest.mark.parametrize("host", OWN)
async def test_the_service_answers_to_its_addresses_its_names_and_the_allowed_hosts(
    service: Service, host: str
) -> None:
    assert await status(service, host=host) == 200
    assert await status(service, "POST", host=host, origin=f"https://{host}") == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "chat.example.org.evil.example",
        "127.0.0.1.evil.example",
        "",
        "[::1",
    ],
)
async def test_the_service_answers_to_no_other_name(service: Service, host: str) -> None:
    """Otherwise who owns the name could point it to this service, and read it by the browsers of visitors."""
    assert await status(service, host=host) == 421
    assert await status(service, "POST", host=host, origin=f"http://{host}") == 421
    assert service.presence.now.names == ()


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://localhost:3000",
        "http://127.0.0.1:8000",
        "http://[::1",
        "localhost:8000",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_a_page_of_another_origin_is_refused(service: Service, method: str, origin: str) -> None:
    assert await status(service, method, origin=origin) == 403
    assert service.presence.now.names == ()


async def test_pages_of_an_allowed_host_may_send_requests(service: Service) -> None:
    """Behind a proxy, Host may be an address of this machine, and Origin the proxy's name."""
    assert await status(service, "POST", origin="https://chat.example.org") == 200
    assert await status(service, "POST", host="127.0.0.1:8000", origin="https://chat.example.org:8443") == 200


async def test_programs_that_are_no_browsers_name_no_origin(service: Service) -> None:
    assert await status(service, "POST") == 200


async def test_the_refusal_names_the_option(service: Service) -> None:
    transport = httpx.ASGITransport(application(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://evil.example") as client:
        assert "--allow-host" in (await client.get("/")).json()["detail"]
