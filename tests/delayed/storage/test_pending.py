"""A listing of all messages on a disk that cannot be read."""

from __future__ import annotations

import pytest

from tests.delayed.storage.simulated_disk import SimulatedDisk
from tests.delayed.storage.store_run import NOW, PATH, StoreRun


def test_a_listing_raises_at_each_read_that_fails() -> None:
    run = StoreRun(SimulatedDisk())
    run.open()
    run.put(NOW + 60_000, b"in a slot file")
    run.spread()
    run.put(NOW + 5_000, b"in the log", soon=True)
    for directory, reads in (("wal", 6), ("slots", 5)):
        for read in range(reads):
            run.disk.fail("read", path=PATH / directory, after=read)
            with pytest.raises(OSError, match="Input/output error"):
                list(run.store.pending())
    assert len(list(run.store.pending())) == 2
    assert run.disk.opened == 1
