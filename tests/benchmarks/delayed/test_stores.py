"""What the benchmarks of delayed messages say of a store."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import anyio
import pytest

from benchmarks.suites.delayed.nats import NATS
from benchmarks.suites.delayed.stores import STORES


async def nobody(id: str, payload: bytes, due: float) -> None:
    pass


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has this clock")
def test_the_processor_time_of_threads_that_have_ended_counts(tmp_path: Path) -> None:
    used = 0.0

    def work() -> None:
        nonlocal used
        while used < 0.02:
            used = time.thread_time()

    store = STORES[0](tmp_path, nobody)
    before = store.processor_seconds()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert store.processor_seconds() - before >= 0.02


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.skipif(not NATS.available, reason="nats-server is not installed")
async def test_nats_delivers_each_message_at_its_time_and_none_that_was_cancelled(tmp_path: Path) -> None:
    delivered: dict[bytes, float] = {}
    changed = anyio.Event()

    async def deliver(id: str, payload: bytes, due: float) -> None:
        delivered[payload] = time.time() - due
        changed.set()

    async with NATS(tmp_path, deliver) as store:
        now = time.time()
        cancelled, _ = [await store.schedule(b"%d" % number, now + 0.3) for number in range(2)]
        assert await store.cancel(cancelled)
        assert not await store.cancel(cancelled)
        await store.schedule(b"last", now + 1)
        with anyio.fail_after(30):
            while b"last" not in delivered:
                await changed.wait()
                changed = anyio.Event()
    assert delivered.keys() == {b"1", b"last"}
    assert min(delivered.values()) >= 0
