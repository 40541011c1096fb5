"""The service in the test's own process, and in a process of its own for the slow tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import httpx
import pytest
import pytest_asyncio

from examples.longpoll.application import application
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from tests.browser import browser as browser
from tests.examples.longpoll.process import ServiceProcess, service_process

StartService = Callable[..., AbstractContextManager[ServiceProcess]]

SLOW_FIXTURES: Final = {"start_service", "socket_server", "browser"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here that needs a server or a browser as slow."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def limits() -> Limits:
    """Limits that are small enough to be reached."""
    return Limits(pending=5, wait=60, topics=2, record_bytes=64, log_records=4, answer_records=3, sessions=3)


@pytest_asyncio.fixture
async def service(limits: Limits) -> AsyncIterator[Service]:
    service = Service(limits)
    async with service.running():
        yield service


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client that calls the application without a network."""
    transport = httpx.ASGITransport(application(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="session")
def start_service() -> StartService:
    """Starts the service in a process of its own, for a test that needs options or ends it."""
    return service_process


@pytest.fixture(scope="session")
def running_service(start_service: StartService) -> Iterator[ServiceProcess]:
    """One service for all tests that leave it as it is."""
    with start_service("--session-timeout", "60") as service:
        yield service
