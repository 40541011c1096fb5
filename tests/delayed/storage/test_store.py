"""The store without crashes: what its calls answer, and what they cost."""

from __future__ import annotations

import errno
import json
import resource
import tracemalloc
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import home_of
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import HEADER_SIZE, Kind
from purgatory.delayed.storage.ids import bucket_of, digest
from purgatory.delayed.storage.requests import End, IdTaken, Put, Stored, StoreFailed, StoreLocked
from purgatory.delayed.storage.store import Store
from tests.delayed.storage.simulated_disk import Fate, SimulatedDisk, Survival
from tests.delayed.storage.store_run import NOW, PATH, SLOT_MS, StoreRun

LATER = NOW + 60_000
DAY = 86_400_000


class WithoutTruncation(Survival):
    """Keeps a write, and loses what takes it back."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.fates = iter([Fate.KEPT, Fate.LOST])

    def fate(self) -> Fate:
        return next(self.fates)


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def run(disk: SimulatedDisk) -> StoreRun:
    run = StoreRun(disk)
    run.open()
    return run


@pytest.fixture
def few_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_id_is_free_behind_the_end_of_its_message_in_the_same_commit(run: StoreRun) -> None:
    token = run.put(LATER, b"payload", "id")
    assert token is not None
    end = End(Kind.CANCELLED, token, LATER, named=True, check=True)
    ended, again = run.store.commit([end, Put(LATER, "id", b"payload", soon=False)])
    assert ended is True
    assert isinstance(again, Stored)
    assert not again.repeated
    run.spread()
    assert [message.token for message in run.found()] == [again.token]


def test_of_two_messages_with_one_id_in_a_commit_the_second_is_repeated_or_refused(run: StoreRun) -> None:
    first, same, other = run.store.commit(
        [
            Put(LATER, "id", b"payload", soon=False),
            Put(LATER, "id", b"payload", soon=False),
            Put(LATER, "id", b"other", soon=False),
        ]
    )
    assert isinstance(first, Stored)
    assert same == Stored(first.token, 0, repeated=True)
    assert isinstance(other, IdTaken)
    found = run.store.ids.taken("id")
    assert found is not None
    assert (found.token, found.due) == (first.token, LATER)
    run.spread()
    assert [message.token for message in run.found()] == [first.token]


def test_of_two_cancellations_in_a_commit_the_first_is_told_that_it_was_the_first(run: StoreRun) -> None:
    token = run.put(LATER, b"payload", "id")
    assert token is not None
    end = End(Kind.CANCELLED, token, LATER, named=True, check=True)
    assert run.store.commit([end, end]) == [True, False]
    assert run.store.ids.taken("id") is None
    assert run.store.commit([end]) == [False]


def test_a_commit_that_has_nothing_to_write_does_not_write(run: StoreRun) -> None:
    run.put(LATER, b"payload", "id")
    written = run.store.log.written
    run.store.commit([Put(LATER, "id", b"payload", soon=False)])
    run.store.commit([])
    assert run.store.log.written == written


def test_what_a_full_disk_has_refused_does_not_come_back_after_a_crash(run: StoreRun) -> None:
    token = run.put(LATER, b"payload")
    assert token is not None
    run.disk.capacity = run.disk.used + 30
    with pytest.raises(OSError, match="No space"):
        run.put(LATER, b"refused")
    with pytest.raises(OSError, match="No space"):
        # The frame of a cancellation fits, and another one behind it does not.
        run.store.commit([End(Kind.CANCELLED, token, LATER, named=False)] * 2)
    run.disk.capacity = None
    found = run.after_power_cut(WithoutTruncation(Random(0)))
    found.open()
    assert [message.token for message in found.found()] == [token]


def test_a_failed_sync_of_the_log_is_never_repeated(run: StoreRun) -> None:
    token = run.put(LATER, b"payload")
    run.disk.fail("sync")
    with pytest.raises(StoreFailed, match="failed to sync a file"):
        run.put(LATER, b"another")
    operations: list[str] = []
    run.disk.watch = operations.append
    with pytest.raises(StoreFailed, match="an earlier sync failed: the disk failed to sync a file"):
        run.put(LATER, b"a third")
    with pytest.raises(StoreFailed, match="an earlier sync failed: the disk failed to sync a file"):
        run.spread()
    # The segment of the log is closed, and nothing else.
    assert operations == ["close"]
    # What was on the disk before still is, and no more than that for certain.
    found = run.after_power_cut(Survival(Random(0), Fate.LOST))
    found.open()
    assert [message.token for message in found.found()] == [token]


def test_after_a_failed_sync_of_the_directory_the_log_takes_no_more(run: StoreRun) -> None:
    run.disk.fail("sync_directory")
    with pytest.raises(StoreFailed, match="failed to sync /service/messages/wal"):
        run.put(LATER, b"payload")
    with pytest.raises(StoreFailed, match="an earlier sync failed"):
        run.put(LATER, b"another")


def test_a_segment_that_cannot_be_made_is_made_again(run: StoreRun) -> None:
    run.disk.fail("open", errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        run.put(LATER, b"payload")
    run.put(LATER, b"payload")
    run.spread()
    run.check_ids()
    assert len(run.found()) == 1


def test_a_spread_that_found_no_room_is_repeated(run: StoreRun) -> None:
    for minute in range(1, 4):
        run.put(NOW + minute * 60_000, b"payload", f"id {minute}")
    used = run.disk.used
    for room in range(0, 280, 20):
        run.disk.capacity = used + room
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                run.spread()
            # What fitted was taken back. Another attempt finds the same room.
            assert run.disk.used - used < 30
    run.disk.capacity = None
    run.spread()
    assert len(run.found()) == 3
    run.check_ids()


@pytest.mark.parametrize("soon", [False, True])
def test_a_pending_message_keeps_its_id_however_long_ago_it_was_due(
    run: StoreRun, monkeypatch: pytest.MonkeyPatch, soon: bool
) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.ids._REWRITE", 0)
    token = run.put(LATER, b"payload", "id", soon=soon)
    assert token is not None
    # The clock may be wrong, too.
    run.set_the_clock(NOW + 10 * DAY)
    run.spread()
    run.check_ids()
    run.close()
    run.open()
    run.check()
    run.deliver(token)
    run.spread()
    run.check_ids()


@pytest.mark.parametrize("since", [DAY, DAY + 1])
def test_the_id_of_a_message_that_was_lost_is_free_after_a_day(
    run: StoreRun, monkeypatch: pytest.MonkeyPatch, since: int
) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.ids._REWRITE", 0)
    bucket = bucket_of(digest(b"id"))
    other = next(name for name in map(str, count()) if bucket_of(digest(name.encode())) == bucket)
    run.put(LATER, b"payload", "id")
    run.spread()
    run.store.change(run.store.slots.remove, LATER // SLOT_MS)
    run.remove()
    run.set_the_clock(LATER + since)
    # Its bucket doubles, and is rewritten.
    run.put(LATER + 2 * DAY, b"payload", other)
    run.spread()
    assert (run.store.ids.taken("id") is None) is (since > DAY)


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
def test_a_failed_sync_of_a_spread_is_not_repeated(run: StoreRun, operation: str) -> None:
    run.put(LATER, b"payload", "the id")
    run.disk.fail(operation, after=1)
    for _ in range(2):
        with pytest.raises(StoreFailed, match=r"failed to sync"):
            run.spread()
    slot = LATER // SLOT_MS
    with pytest.raises(StoreFailed, match="an earlier sync failed"):
        run.store.change(run.store.slots.remove, slot)
    with pytest.raises(StoreFailed, match="an earlier sync failed"):
        run.store.change(run.store.log.remove_oldest, 3, ())
    found = run.after_power_cut(Survival(Random(0), Fate.LOST))
    found.open()
    found.check()
    assert len(found.promised) == 1


def test_messages_of_many_slots_are_read_with_few_files_open(tmp_path: Path, few_files: None) -> None:
    store = Store(tmp_path, SLOT_MS, Disk(), NOW)
    dues = [NOW + 1_000 * number for number in range(300)]
    store.commit([Put(due, None, b"payload", soon=False) for due in dues])
    store.change(store.mover.move, store.log.seal(), NOW)
    found = store.read([Location(due, HEADER_SIZE, 0) for due in dues])
    assert [message.due for message in found if isinstance(message, Message)] == dues
    store.close()


@pytest.mark.parametrize("segment", [1, 1 << 24, (1 << 35) - 1])
def test_a_position_tells_the_log_from_a_slot_file(run: StoreRun, segment: int) -> None:
    run.store.log._last = segment - 1
    [first, second] = run.store.commit([Put(NOW, None, payload, soon=True) for payload in (b"a", b"b")])
    assert isinstance(first, Stored)
    assert isinstance(second, Stored)
    assert home_of(second.position) == segment
    messages = run.store.read([Location(NOW, stored.position, stored.token) for stored in (first, second)])
    assert [(m.payload, m.position) for m in messages if isinstance(m, Message)] == [
        (b"a", first.position),
        (b"b", second.position),
    ]
    assert second.position < 1 << 64
    # A slot file may have any length.
    assert home_of((1 << 63) - 1) == 0


def test_a_read_stops_behind_eight_mebibytes(run: StoreRun) -> None:
    answers = run.store.commit([Put(NOW, None, bytes(3 << 20), soon=True)] * 4)
    places = [Location(NOW, answer.position, 0) for answer in answers if isinstance(answer, Stored)]
    assert len(run.store.read(places)) == 3
    assert len(run.store.read(places[3:])) == 1


def test_a_message_that_is_damaged_or_gone_is_logged(run: StoreRun, caplog: pytest.LogCaptureFixture) -> None:
    [answer] = run.store.commit([Put(NOW, None, b"payload", soon=True)])
    assert isinstance(answer, Stored)
    run.disk.content(PATH / "wal" / "00000001").data[-1] ^= 1
    assert run.store.read([Location(NOW, answer.position, 0), Location(LATER, HEADER_SIZE, 0)]) == [
        None,
        None,
    ]
    assert [record.getMessage() for record in caplog.records] == [
        f"/service/messages: a message due at {due} was lost: its frame is damaged" for due in (NOW, LATER)
    ]


def test_a_damaged_segment_loses_what_is_damaged_and_says_so(
    run: StoreRun, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        run.put(LATER, b"payload %d" % number)
    content = run.disk.content(PATH / "wal" / "00000001")
    size = len(content.data) // 3
    content.data[size + 35] ^= 0x10
    run.spread()
    assert [message.payload for message in run.found()] == [b"payload 0", b"payload 2"]
    assert f"segment 1 of the log: {size} bytes from byte {size} are damaged" in caplog.text


def test_a_damaged_slot_file_loses_what_is_damaged_and_says_so(
    run: StoreRun, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        run.put(LATER, b"payload %d" % number)
    run.spread()
    slot = LATER // SLOT_MS
    [name] = run.disk.names(PATH / "slots")
    content = run.disk.content(PATH / "slots" / name / str(slot * SLOT_MS))
    content.data[-1] ^= 1
    assert [message.payload for message in run.found()] == [b"payload 0", b"payload 1"]
    assert f"the file of slot {slot}: " in caplog.text


def test_recovery_holds_a_part_of_a_long_log_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.storage.store._LONG", 1 << 20)
    store = Store(tmp_path, SLOT_MS, Disk(), NOW)
    for _ in range(16):
        store.commit([Put(LATER, None, bytes(64_000), soon=number % 2 == 0) for number in range(4)])
        store.log.seal()
    # As a crash leaves it.
    store._disk.release(store._held.values())
    tracemalloc.start()
    store = Store(tmp_path, SLOT_MS, Disk(), NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The log has 4 MiB.
    assert peak < 2 << 20
    assert len(store.index(LATER // SLOT_MS)) == 64
    store.close()


def test_what_is_repeated_after_a_failed_sync_and_a_kill_is_on_the_disk(run: StoreRun) -> None:
    run.disk.fail("sync")
    with pytest.raises(StoreFailed):
        run.put(LATER, b"payload", "id")
    # The process is killed. The system still shows the message.
    run.disk.release(run.store._held.values())
    again = StoreRun(run.disk)
    again.open()
    [answer] = again.store.commit([Put(LATER, "id", b"payload", soon=False)])
    assert isinstance(answer, Stored)
    assert answer.repeated
    found = again.after_power_cut(Survival(Random(0), Fate.LOST))
    found.open()
    assert [message.token for message in found.found()] == [answer.token]


def test_an_opening_leaves_the_log_where_it_is_and_knows_what_is_due_soon(run: StoreRun) -> None:
    soon, over = run.put(NOW + 5_000, b"soon", soon=True), run.put(NOW + 5_000, b"over", "id", soon=True)
    later = run.put(LATER, b"later", "other")
    assert over is not None
    run.deliver(over)
    run.close()
    operations = run.disk.operations
    run.open()
    # The segment is written again, and nothing else.
    assert run.disk.operations - operations < 20
    assert list(run.soon) == [soon]
    assert run.store.slots.present(1 << 45) == []
    assert {message.token for message in run.found()} == {soon, later}
    run.promised.pop(over, None)
    run.check_ids()


def test_what_is_not_due_soon_any_more_moves_to_its_slot_file(run: StoreRun) -> None:
    # The clock was ahead when it was scheduled.
    token = run.put(NOW + 70_000, b"payload", soon=True)
    run.close()
    run.open()
    assert run.soon == {}
    assert run.disk.names(PATH / "wal") == []
    assert len(run.store.index((NOW + 70_000) // SLOT_MS)) == 1
    assert [message.token for message in run.found()] == [token]


def test_what_a_crash_has_left_of_a_segment_that_was_written_again_is_removed(run: StoreRun) -> None:
    token = run.put(LATER, b"payload")
    run.close()
    run.disk.open(PATH / "wal" / "00000001.new").close()
    run.open()
    assert run.disk.names(PATH / "wal") == ["00000001"]
    run.disk.open(PATH / "wal" / "00000000.new").close()
    run.close()
    run.open()
    assert run.disk.names(PATH / "wal") == ["00000001"]
    assert [message.token for message in run.found()] == [token]


def test_a_second_store_in_the_same_directory_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, SLOT_MS, Disk(), NOW)
    with pytest.raises(StoreLocked, match="is open already"):
        Store(tmp_path, SLOT_MS, Disk(), NOW)
    store.close()
    Store(tmp_path, SLOT_MS, Disk(), NOW).close()


def test_a_store_keeps_the_length_of_its_slots(tmp_path: Path) -> None:
    Store(tmp_path, 500, Disk(), NOW).close()
    with pytest.raises(ValueError, match=r"was made with slot=0.5, not 1.0: use slot=0.5"):
        Store(tmp_path, 1_000, Disk(), NOW)
    # It is not locked after that.
    Store(tmp_path, 500, Disk(), NOW).close()


def test_a_store_of_a_later_release_is_refused(tmp_path: Path) -> None:
    Store(tmp_path, SLOT_MS, Disk(), NOW).close()
    line = json.dumps({"version": 2, "slot_ms": SLOT_MS, "salt": 0})
    (tmp_path / "format").write_text(f"{line}\n{crc32(line.encode()):08x}\n")
    with pytest.raises(ValueError, match="has format 2; this release reads 1"):
        Store(tmp_path, SLOT_MS, Disk(), NOW)


@pytest.mark.parametrize("name", ["format", "checkpoint"])
def test_each_flipped_bit_of_the_format_and_of_the_checkpoint_is_noticed(run: StoreRun, name: str) -> None:
    run.put(LATER, b"payload")
    run.spread()
    run.put(LATER, b"payload")
    run.close()
    content = run.disk.content(PATH / name)
    whole = bytes(content.data)
    for bit in range(8 * len(whole)):
        content.data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(
            ValueError, match=f"{name} is damaged: .* restore the whole directory from a copy"
        ):
            run.open()
        content.data[:] = whole
    run.open()
    run.check()


@pytest.mark.parametrize("name", ["format", "checkpoint"])
@pytest.mark.parametrize("spread", [False, True])
def test_a_store_whose_format_or_checkpoint_is_missing_is_refused(
    run: StoreRun, name: str, spread: bool
) -> None:
    run.put(LATER, b"payload")
    if spread:
        run.spread()
        run.remove()
    run.close()
    run.disk.remove(PATH / name)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{name} is missing: restore the whole directory from a copy"):
            run.open()


def test_a_store_that_cannot_be_opened_is_not_locked(disk: SimulatedDisk) -> None:
    disk.fail("make_directory", errno.ENOSPC, after=3)
    with pytest.raises(OSError, match="No space"):
        StoreRun(disk).open()
    StoreRun(disk).open()
