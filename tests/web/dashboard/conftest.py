"""A host of the dashboard, for a browser to open."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.web.dashboard.host import Host


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    host = Host()
    thread = threading.Thread(target=host.run_in_thread)
    thread.start()
    host.up.result(10)
    yield host
    host.should_exit = True
    thread.join()
    host.socket.close()
