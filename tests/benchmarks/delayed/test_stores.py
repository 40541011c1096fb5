"""What the benchmarks of delayed messages say of a store."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

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
    thread.join()
    assert store.processor_seconds() - before >= 0.02
