"""The service in the test's own process, asked without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from examples.longpoll.application import application
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service


@pytest.fixture
def limits() -> Limits:
    """Small ones."""
    return Limits(pending=5, topics=2, record_bytes=64, log_records=4, answer_records=3, sessions=3)


@pytest_asyncio.fixture
async def service(limits: Limits) -> AsyncIterator[Service]:
    service = Service(limits)
    async with service.running():
        yield service


@pytest_asyncio.fixture
async def client(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
