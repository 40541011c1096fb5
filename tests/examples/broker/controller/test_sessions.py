"""Broker sessions: how the partitions change when brokers start, time out, stop and return."""

from collections.abc import Callable

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import NO_LEADER, PartitionState
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration

EVENTS = TopicPartition("events", 0)


def start(controller: Controller, *broker_ids: int) -> None:
    for broker_id in broker_ids:
        register(controller, broker_id)


def create(controller: Controller, *replicas: int) -> None:
    controller.create_topic(NewTopic(EVENTS.topic, assignment=(replicas,)))


def state(controller: Controller) -> PartitionState:
    found = controller.image.partition(EVENTS)
    assert found is not None
    return found


def live(controller: Controller) -> list[int]:
    return [broker_id for broker_id, broker in controller.image.brokers.items() if not broker.fenced]


def test_a_broker_is_fenced_when_its_session_times_out_and_not_before(
    controller: Controller, clock: ManualClock
) -> None:
    start(controller, 0)
    clock.advance(8.999)
    assert live(controller) == [0]
    clock.advance(0.001)
    assert live(controller) == []


def test_each_heartbeat_extends_the_session(controller: Controller, clock: ManualClock) -> None:
    start(controller, 0, 1)
    for _ in range(10):
        clock.advance(5)
        controller.heartbeat(0)
    assert live(controller) == [0]
    clock.advance(8.999)
    assert live(controller) == [0]
    clock.advance(0.001)
    assert live(controller) == []


def test_a_heartbeat_of_a_live_broker_publishes_no_image(controller: Controller) -> None:
    start(controller, 0)
    before = controller.image
    controller.heartbeat(0)
    assert controller.image is before


def test_a_heartbeat_of_an_unregistered_broker_is_an_error(controller: Controller) -> None:
    with pytest.raises(KeyError):
        controller.heartbeat(0)


def test_the_next_live_in_sync_replica_leads_in_place_of_a_fenced_one(
    controller: Controller, clock: ManualClock
) -> None:
    start(controller, 0, 1, 2)
    create(controller, 2, 0, 1)
    clock.advance(5)
    controller.heartbeat(0)
    controller.heartbeat(1)
    clock.advance(4)
    after = state(controller)
    assert (after.leader, after.in_sync, after.leader_epoch) == (0, (0, 1), 1)


def test_a_live_replica_out_of_sync_does_not_lead(controller: Controller) -> None:
    start(controller, 0, 1, 2)
    create(controller, 0, 1, 2)
    controller.alter_partition(0, EVENTS, PartitionState((0, 1, 2), (0, 2), 0))
    controller.fence(0)
    assert (state(controller).leader, state(controller).in_sync) == (2, (2,))


def test_a_fenced_follower_leaves_the_in_sync_replicas_without_a_new_leader_epoch(
    controller: Controller,
) -> None:
    start(controller, 0, 1, 2)
    create(controller, 0, 1, 2)
    controller.fence(1)
    assert state(controller) == PartitionState((0, 1, 2), (0, 2), 0, leader_epoch=0, partition_epoch=1)


def test_the_last_in_sync_replica_stays_in_sync_and_nobody_leads(controller: Controller) -> None:
    start(controller, 0, 1)
    create(controller, 0, 1)
    controller.fence(1)
    controller.fence(0)
    assert (state(controller).leader, state(controller).in_sync) == (NO_LEADER, (0,))


def register(controller: Controller, broker_id: int) -> None:
    controller.register(registration(broker_id))


@pytest.mark.parametrize("returns", [Controller.heartbeat, register])
def test_only_a_replica_in_sync_leads_again_when_it_comes_back(
    controller: Controller, returns: Callable[[Controller, int], None]
) -> None:
    start(controller, 0, 1)
    create(controller, 0, 1)
    controller.fence(1)
    controller.fence(0)
    returns(controller, 1)
    assert state(controller).leader == NO_LEADER
    returns(controller, 0)
    assert (state(controller).leader, state(controller).in_sync) == (0, (0,))
    assert live(controller) == [0, 1]


def test_an_unfenced_broker_has_a_session_again(controller: Controller, clock: ManualClock) -> None:
    start(controller, 0)
    clock.advance(9)
    controller.heartbeat(0)
    clock.advance(8.999)
    assert live(controller) == [0]
    clock.advance(0.001)
    assert live(controller) == []


def test_a_broker_that_restarts_within_its_session_loses_its_leaderships(controller: Controller) -> None:
    start(controller, 0, 1)
    create(controller, 0, 1)
    start(controller, 0)
    assert (state(controller).leader, state(controller).in_sync) == (1, (1,))
    assert live(controller) == [0, 1]
    assert controller.session_purgatory.statistics().pending == 2


def test_a_restarted_broker_that_is_alone_in_sync_leads_in_a_new_epoch(controller: Controller) -> None:
    start(controller, 0)
    create(controller, 0)
    start(controller, 0)
    assert (state(controller).leader, state(controller).leader_epoch) == (0, 2)


def test_a_stopped_broker_is_fenced_at_once_and_only_once(controller: Controller, clock: ManualClock) -> None:
    start(controller, 0, 1)
    controller.fence(0)
    after = controller.image
    controller.fence(0)
    controller.fence(7)
    assert controller.image is after
    assert live(controller) == [1]
    assert controller.session_purgatory.statistics().pending == 1


def test_a_broker_may_come_back_at_another_address(controller: Controller) -> None:
    start(controller, 0)
    moved = registration(5)
    controller.register(type(moved)(0, moved.host, moved.port, fenced=True))
    assert controller.image.brokers[0] == type(moved)(0, moved.host, moved.port)


def test_a_change_leaves_other_partitions_the_same_objects(controller: Controller) -> None:
    start(controller, 0, 1, 2)
    create(controller, 0, 1)
    before = controller.image.topics[EVENTS.topic]
    controller.fence(2)
    assert controller.image.topics[EVENTS.topic] is before
