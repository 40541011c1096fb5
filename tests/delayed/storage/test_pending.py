"""A listing of all messages on a disk that cannot be read."""

from __future__ import annotations

from itertools import count

import pytest

from purgatory.delayed.message import Message
from tests.delayed.storage.simulated_disk import SimulatedDisk
from tests.delayed.storage.store_run import NOW, PATH, StoreRun


@pytest.mark.parametrize("directory", ["wal", "slots"])
def test_a_listing_raises_at_each_read_that_fails(directory: str) -> None:
    run = StoreRun(SimulatedDisk())
    run.open()
    run.put(NOW + 60_000, b"in a slot file")
    run.spread()
    run.put(NOW + 5_000, b"in the log", soon=True)
    listed: list[Message] = []
    for read in count():
        run.disk.fail("read", path=PATH / directory, after=read)
        try:
            listed = list(run.store.pending())
        except OSError:
            continue
        break
    assert read > 5
    assert sorted(message.payload for message in listed) == [b"in a slot file", b"in the log"]
    assert run.disk.opened == 1
