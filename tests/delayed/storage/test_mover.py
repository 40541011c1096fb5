"""What the slot files get from the log."""

from __future__ import annotations

import pytest

from purgatory.delayed.storage.frames import Frame, Kind, scan
from tests.delayed.storage.simulated_disk import SimulatedDisk
from tests.delayed.storage.store_run import END_OF_TIME, NOW, StoreRun

LATER = NOW + 60_000


@pytest.fixture
def run() -> StoreRun:
    run = StoreRun(SimulatedDisk())
    run.open()
    return run


def put(run: StoreRun, payload: bytes, *, soon: bool = False) -> int:
    token = run.put(LATER, payload, soon=soon)
    assert token is not None
    return token


def kinds(run: StoreRun) -> list[int]:
    """Of the frames in the slot file."""
    file = run.store.slots.open(run.store.slots.slot_of(LATER))
    assert file is not None
    frames = list(scan(run.store._salt, file.read))
    file.close()
    return [frame.kind for frame in frames if isinstance(frame, Frame)]


def test_a_message_that_has_ended_meanwhile_gets_no_slot_file(run: StoreRun) -> None:
    run.cancel(put(run, b"payload"))
    run.spread()
    assert run.store.slots.present(END_OF_TIME) == []


def test_a_message_that_has_ended_meanwhile_is_left_out_of_the_slot_file(run: StoreRun) -> None:
    first, second, third = (put(run, payload) for payload in (b"first", b"second", b"third"))
    run.cancel(second)
    run.spread()
    assert kinds(run) == [Kind.BLOCK, Kind.LATER, Kind.LATER, Kind.CANCELLED]
    assert [message.token for message in run.found()] == [first, third]


def test_the_end_of_a_message_follows_it_into_its_slot_file(run: StoreRun) -> None:
    token = put(run, b"payload")
    run.spread()
    run.deliver(token)
    run.spread()
    assert kinds(run) == [Kind.BLOCK, Kind.LATER, Kind.BLOCK, Kind.DELIVERED]
    assert run.found() == []


def test_what_was_due_soon_moves_to_its_slot_file_as_it_is_when_the_log_is_long(
    run: StoreRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.store._LONG", 0)
    soon, later = put(run, b"soon", soon=True), put(run, b"later")
    run.close()
    run.open()
    assert kinds(run) == [Kind.BLOCK, Kind.LATER, Kind.BLOCK, Kind.SOON]
    assert [message.token for message in run.found()] == [later, soon]
