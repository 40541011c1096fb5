"""A host of the dashboard for a browser, and a viewer without a browser."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop
from tests.web.dashboard.host import Host
from tests.web.dashboard.viewer import client


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host()
    thread = threading.Thread(target=host.run_in_thread)
    thread.start()
    host.up.result(10)
    yield host
    host.should_exit = True
    thread.join(30)
    assert not thread.is_alive(), "the server does not stop"
    host.socket.close()


@pytest_asyncio.fixture
async def viewer(virtual_time: VirtualTimeLoop, purgatory: Purgatory) -> AsyncIterator[httpx.AsyncClient]:
    async with client(purgatory) as viewer:
        yield viewer
