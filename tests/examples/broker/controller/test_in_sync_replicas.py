"""Changes of the in-sync replicas by leaders."""

from dataclasses import replace

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import NewTopic
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import PartitionState
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.controller.controlled_cluster import registration

EVENTS = TopicPartition("events", 0)
FRESH = PartitionState((0, 1, 2), (0, 1, 2), 0)


@pytest.fixture
def events(controller: Controller) -> Controller:
    """A topic with one partition on three of four brokers, led by broker 0."""
    for broker_id in range(4):
        controller.register(registration(broker_id))
    controller.create_topic(NewTopic("events", assignment=((0, 1, 2),)))
    return controller


def refusal(controller: Controller, broker_id: int, wanted: PartitionState) -> ErrorCode:
    before = controller.image
    with pytest.raises(ApiError) as refused:
        controller.alter_partition(broker_id, EVENTS, wanted)
    assert controller.image is before
    return refused.value.code


def test_each_change_of_the_in_sync_replicas_increments_the_partition_epoch(events: Controller) -> None:
    shrunk = events.alter_partition(0, EVENTS, replace(FRESH, in_sync=(0, 2)))
    assert shrunk == FRESH.with_in_sync((0, 2))
    assert events.image.partition(EVENTS) == shrunk
    expanded = events.alter_partition(0, EVENTS, replace(shrunk, in_sync=(0, 2, 1)))
    assert expanded == shrunk.with_in_sync((0, 1, 2))
    assert events.image.partition(EVENTS) == expanded


def test_a_change_by_another_broker_or_in_another_epoch_is_fenced(events: Controller) -> None:
    assert refusal(events, 1, replace(FRESH, in_sync=(1,))) is ErrorCode.fenced_leader_epoch
    assert refusal(events, 0, replace(FRESH, leader_epoch=1)) is ErrorCode.fenced_leader_epoch
    events.fence(0)
    assert refusal(events, 0, FRESH) is ErrorCode.fenced_leader_epoch


def test_a_change_of_an_older_state_is_refused(events: Controller) -> None:
    events.alter_partition(0, EVENTS, replace(FRESH, in_sync=(0, 1)))
    assert refusal(events, 0, replace(FRESH, in_sync=(0,))) is ErrorCode.invalid_update_version


def test_a_fenced_broker_does_not_join(events: Controller) -> None:
    events.fence(1)
    now = events.image.partition(EVENTS)
    assert now is not None
    assert refusal(events, 0, replace(now, in_sync=(0, 1, 2))) is ErrorCode.ineligible_replica


@pytest.mark.parametrize("in_sync", [(), (1, 2), (0, 3)])
def test_the_in_sync_replicas_have_the_leader_and_only_replicas(
    events: Controller, in_sync: tuple[int, ...]
) -> None:
    assert refusal(events, 0, replace(FRESH, in_sync=in_sync)) is ErrorCode.invalid_request


def test_a_change_of_an_unknown_partition_is_refused(events: Controller) -> None:
    events.delete_topic("events")
    assert refusal(events, 0, FRESH) is ErrorCode.unknown_topic_or_partition
