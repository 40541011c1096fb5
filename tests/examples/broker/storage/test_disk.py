"""The replicas that a broker finds again: which there are, and which are deleted."""

from pathlib import Path
from uuid import UUID

import pytest

from examples.broker.errors import ApiError
from examples.broker.storage.disk import Disk
from examples.broker.storage.partition_directory import HIGH_WATERMARK, PartitionDirectory
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.full_disk import full_disk
from tests.examples.broker.storage.stored_log import SEGMENT_BYTES, batch, content

EVENTS, DASHES = TopicPartition("events", 0), TopicPartition("a-1-b", 12)
ONE, OTHER = UUID(int=1), UUID(int=2)


def store(disk: Disk, topic_partition: TopicPartition, topic_id: UUID = ONE) -> None:
    disk.open(topic_partition, topic_id, SEGMENT_BYTES).log.append_as_leader(batch())


def end(disk: Disk, topic_partition: TopicPartition, topic_id: UUID = ONE) -> int:
    return disk.open(topic_partition, topic_id, SEGMENT_BYTES).log.log_end_offset


def test_each_replica_is_found_again_after_a_restart(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "broker-1")
    for topic_partition in (EVENTS, DASHES, DASHES):
        store(disk, topic_partition)
    for _ in range(2):
        assert disk.topic_partitions <= {EVENTS, DASHES}
        assert (end(disk, EVENTS), end(disk, DASHES)) == (2, 4)
        disk = Disk(tmp_path / "broker-1")


def test_in_memory_a_replica_outlives_the_broker_alone() -> None:
    disk = Disk()
    store(disk, EVENTS)
    assert (end(disk, EVENTS), end(Disk(), EVENTS)) == (2, 0)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_deleted_replica_leaves_no_file(tmp_path: Path, restarted: bool) -> None:
    disk = Disk(tmp_path)
    store(disk, EVENTS)
    if restarted:
        disk = Disk(tmp_path)
        end(disk, EVENTS)
    disk.delete(EVENTS)
    assert list(tmp_path.iterdir()) == []
    disk.delete(EVENTS)
    assert end(disk, EVENTS) == 0


def test_a_topic_of_the_same_name_begins_with_an_empty_log(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    store(disk, EVENTS)
    assert end(disk, EVENTS, OTHER) == 0
    store(disk, EVENTS, OTHER)
    assert end(Disk(tmp_path), EVENTS, OTHER) == 2


@pytest.mark.parametrize("opened", [False, True])
def test_replicas_of_other_topics_than_those_retained_are_deleted(tmp_path: Path, opened: bool) -> None:
    disk = Disk(tmp_path)
    store(disk, EVENTS)
    store(disk, DASHES, OTHER)
    if not opened:
        disk = Disk(tmp_path)
    disk.retain({OTHER})
    assert [path.name for path in tmp_path.iterdir()] == [str(DASHES)]
    assert end(disk, DASHES, OTHER) == 2


def test_what_is_no_replica_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "backup-2").mkdir()
    (tmp_path / "notes").write_text("mine")
    Disk(tmp_path).retain(set())
    assert {path.name for path in tmp_path.iterdir()} == {"backup-2", "notes"}


def test_a_deletion_that_a_kill_has_interrupted_is_done_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be removed stands for the kill."""
    disk = Disk(tmp_path)
    for _ in range(5):
        store(disk, EVENTS)
    removed: list[Path] = []
    unlink = Path.unlink

    def failing(path: Path, missing_ok: bool = False) -> None:
        if len(removed) == 2:
            raise PermissionError
        removed.append(path)
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", failing)
        with pytest.raises(ApiError, match="KAFKA_STORAGE_ERROR"):
            disk.delete(EVENTS)
    assert len(removed) == 2
    Disk(tmp_path).retain({OTHER})
    assert list(tmp_path.iterdir()) == []


def test_a_high_watermark_beyond_the_recovered_log_is_its_end(tmp_path: Path) -> None:
    store(Disk(tmp_path), EVENTS)
    PartitionDirectory(tmp_path / str(EVENTS), ONE).save(HIGH_WATERMARK, 1_000)
    replica = Disk(tmp_path).open(EVENTS, ONE, SEGMENT_BYTES)
    assert replica.high_watermark == replica.log.log_end_offset


def test_the_high_watermark_is_that_of_the_last_checkpoint(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    store(disk, EVENTS)
    stored = disk.open(EVENTS, ONE, SEGMENT_BYTES)
    stored.move_high_watermark(stored.log.locate(1))
    disk.checkpoint()
    stored.move_high_watermark(stored.log.locate(2))
    assert Disk(tmp_path).open(EVENTS, ONE, SEGMENT_BYTES).high_watermark == 1
    with full_disk():
        disk.checkpoint()
    assert Disk(tmp_path).open(EVENTS, ONE, SEGMENT_BYTES).high_watermark == 1
    disk.checkpoint()
    again = Disk(tmp_path).open(EVENTS, ONE, SEGMENT_BYTES)
    assert (again.high_watermark, content(again.log)) == (2, content(stored.log))
