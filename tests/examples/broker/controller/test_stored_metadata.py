"""The metadata after a restart, and with a disk that is full."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.broker.controller.controller import Controller
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.controller.stored_metadata import PRODUCER_ID_BLOCK, StoredMetadata
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState, TopicConfig, TopicImage
from examples.broker.storage.data_directory import UnusableDirectory, locked
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration
from tests.examples.broker.full_disk import full_disk

EVENTS = TopicPartition("events", 0)
SESSION = 9

ids = st.integers(0, 2**31 - 1)
brokers = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True).map(tuple)
states = st.builds(PartitionState, brokers, brokers, st.integers(NO_LEADER, 9), ids, ids)
configs = st.builds(
    TopicConfig, ids, ids, ids, without_effect=st.dictionaries(st.text(), st.text(), max_size=2)
)
topics = st.builds(
    TopicImage, st.text("ab.-_", min_size=1), st.uuids(), st.lists(states, max_size=3).map(tuple), configs
)


@settings(max_examples=settings().max_examples // 5)
@given(st.lists(topics, max_size=3, unique_by=lambda topic: topic.name), st.integers(0, 3))
def test_metadata_are_read_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, images: list[TopicImage], producers: int
) -> None:
    directory = tmp_path_factory.mktemp("data")
    stored = StoredMetadata(directory)
    stored.put_topics({topic.name: topic for topic in images})
    assert [stored.next_producer_id() for _ in range(producers)] == [*range(producers)]
    again = StoredMetadata(directory)
    assert again.topics == stored.topics
    assert again.cluster_id == stored.cluster_id or not (images or producers)


def test_no_producer_id_is_given_out_twice(tmp_path: Path) -> None:
    found = [StoredMetadata(tmp_path).next_producer_id() for _ in range(3)]
    stored = StoredMetadata(tmp_path)
    found += [stored.next_producer_id() for _ in range(2 * PRODUCER_ID_BLOCK + 1)]
    found.append(StoredMetadata(tmp_path).next_producer_id())
    assert len(set(found)) == len(found)
    assert found == sorted(found)


def test_metadata_that_do_not_change_are_not_written(tmp_path: Path) -> None:
    stored = StoredMetadata(tmp_path)
    stored.put_topics({})
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_a_kill_has_interrupted_leaves_the_metadata_before_it(tmp_path: Path) -> None:
    stored = StoredMetadata(tmp_path)
    with locked(tmp_path):
        (tmp_path / ".metadata.json").write_text('{"format"')
        assert StoredMetadata(tmp_path).topics == {}, "the directory of a new cluster"
        stored.next_producer_id()
        (tmp_path / ".metadata.json").write_text('{"format"')
        assert StoredMetadata(tmp_path).cluster_id == stored.cluster_id


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"format": 2}', "has format 2, but this program reads format 1; choose another --data"),
        ("{}", "is damaged: KeyError"),
        ("[]", "is damaged: TypeError"),
        ("", "is damaged: JSONDecodeError"),
        ('{"format": 1, "cluster_id": "x", "next_producer_id": 0, "topics": {"a": 1}}', "is damaged"),
    ],
)
def test_metadata_of_another_format_are_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(UnusableDirectory, match=f"metadata.json {fault}"):
        StoredMetadata(tmp_path)


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_text("")
    with pytest.raises(UnusableDirectory, match=r"something else, such as holiday.jpg; choose an empty"):
        StoredMetadata(tmp_path)


def controller(clock: ManualClock, directory: Path) -> Controller:
    return Controller(
        ClusterDefaults(broker_session_timeout=SESSION),
        sessions=clock.purgatory("broker session"),
        images=clock.purgatory("image"),
        stored=StoredMetadata(directory),
    )


def state(controller: Controller) -> PartitionState:
    found = controller.image.partition(EVENTS)
    assert found is not None
    return found


def alter(controller: Controller, *in_sync: int) -> None:
    known = state(controller)
    controller.alter_partition(known.leader, EVENTS, replace(known, in_sync=in_sync))


@pytest.fixture
def running(clock: ManualClock, tmp_path: Path) -> Controller:
    """Brokers 1, 2 and 3 are live. Broker 2 leads, and 3 is not in sync."""
    running = controller(clock, tmp_path)
    for broker_id in (1, 2, 3):
        running.register(registration(broker_id))
    running.create_topic(NewTopic(EVENTS.topic, assignment=((2, 1, 3),)))
    alter(running, 2, 1)
    return running


def test_after_a_restart_nobody_leads_until_an_in_sync_replica_registers_and_then_in_a_new_epoch(
    running: Controller, clock: ManualClock, tmp_path: Path
) -> None:
    before = state(running)
    again = controller(clock, tmp_path)
    assert again.image.topics["events"].topic_id == running.image.topics["events"].topic_id
    assert (state(again).leader, state(again).in_sync) == (NO_LEADER, (2, 1))
    again.register(registration(3))
    assert state(again).leader == NO_LEADER, "it may lack records that are acknowledged"
    again.register(registration(1))
    assert (state(again).leader, state(again).in_sync) == (1, (1,))
    assert state(again).leader_epoch > before.leader_epoch
    assert state(controller(clock, tmp_path)).leader_epoch > state(again).leader_epoch


def test_a_deleted_topic_stays_deleted(running: Controller, clock: ManualClock, tmp_path: Path) -> None:
    running.delete_topic("events")
    assert controller(clock, tmp_path).image.topics == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda controller: controller.create_topic(NewTopic("more")),
        lambda controller: controller.delete_topic("events"),
        lambda controller: alter(controller, 2),
        lambda controller: controller.fence(2),
        lambda controller: controller.next_producer_id(),
    ],
    ids=["create a topic", "delete a topic", "alter the in-sync replicas", "fence", "producer id"],
)
def test_a_change_that_cannot_be_stored_is_refused_until_there_is_room(
    running: Controller, change: Callable[[Controller], object]
) -> None:
    image = running.image
    with full_disk():
        for _ in range(2):
            with pytest.raises(ApiError) as refused:
                change(running)
            assert refused.value.code is ErrorCode.kafka_storage_error
    assert running.image is image
    change(running)


def test_an_election_that_cannot_be_stored_elects_nobody(running: Controller) -> None:
    running.fence(2)
    running.register(registration(2))
    alter(running, 2, 1)
    with full_disk():
        (outcome,) = running.elect_leaders(ElectionType.PREFERRED, [EVENTS]).values()
    assert isinstance(outcome, ApiError)
    assert outcome.code is ErrorCode.kafka_storage_error
    assert state(running).leader == 1
    assert running.elect_leaders(ElectionType.PREFERRED, [EVENTS]) == {EVENTS: state(running)}
    assert state(running).leader == 2


def test_a_silent_broker_is_fenced_when_there_is_room_to_say_so(
    running: Controller, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    clock.advance(SESSION - 1)
    running.heartbeat(1)
    with full_disk():
        clock.advance(1)
        assert state(running).leader == 2
        assert "broker 2 is not fenced yet: KAFKA_STORAGE_ERROR" in caplog.text
    running.heartbeat(1)
    clock.advance(SESSION - 0.001)
    assert state(running).leader == 2
    running.heartbeat(1)
    clock.advance(0.001)
    assert state(running).leader == 1
    assert {*running.image.live_brokers} == {1}


def test_a_fenced_broker_stays_so_until_there_is_room(running: Controller) -> None:
    running.create_topic(NewTopic("alone", assignment=((2,),)))
    running.fence(2)
    with full_disk(), pytest.raises(ApiError, match="KAFKA_STORAGE_ERROR"):
        running.heartbeat(2)
    assert 2 not in running.image.live_brokers
    running.heartbeat(2)
    assert 2 in running.image.live_brokers


def test_the_file_can_be_read_by_a_person(running: Controller, tmp_path: Path) -> None:
    stored = json.loads((tmp_path / "metadata.json").read_text())
    assert stored["topics"]["events"]["partitions"] == [
        {"replicas": [2, 1, 3], "in_sync": [2, 1], "leader": 2, "leader_epoch": 0, "partition_epoch": 1}
    ]
