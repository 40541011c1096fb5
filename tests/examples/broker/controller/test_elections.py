"""Elections on request, and the reasons for which they are refused."""

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import NewTopic
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.controller.controlled_cluster import registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.fixture
def events(controller: Controller) -> Controller:
    """A topic with two partitions on three brokers, led by brokers 0 and 1."""
    for broker_id in range(3):
        controller.register(registration(broker_id))
    controller.create_topic(NewTopic("events", assignment=((0, 1, 2), (1, 2, 0))))
    return controller


def rejoin(controller: Controller, broker_id: int, topic_partition: TopicPartition) -> None:
    """Register the broker again, and add it to the in-sync replicas."""
    controller.heartbeat(broker_id)
    state = controller.image.partition(topic_partition)
    assert state is not None
    wanted = PartitionState(
        state.replicas, (*state.in_sync, broker_id), state.leader, state.leader_epoch, state.partition_epoch
    )
    controller.alter_partition(state.leader, topic_partition, wanted)


def code(result: PartitionState | ApiError) -> ErrorCode:
    assert isinstance(result, ApiError)
    return result.code


def test_the_preferred_leader_leads_again_once_it_is_back_in_sync(events: Controller) -> None:
    events.fence(0)
    rejoin(events, 0, ZERO)
    before = events.image.partition(ZERO)
    assert before is not None
    assert before.leader == 1
    assert events.elect_leaders(PREFERRED, [ZERO]) == {ZERO: before.led_by(0)}
    assert events.image.partition(ZERO) == before.led_by(0)


@pytest.mark.parametrize("back", [False, True])
def test_the_preferred_leader_is_not_elected_while_fenced_or_out_of_sync(
    events: Controller, back: bool
) -> None:
    events.fence(0)
    if back:
        events.heartbeat(0)
    before = events.image
    assert code(events.elect_leaders(PREFERRED, [ZERO])[ZERO]) is ErrorCode.preferred_leader_not_available
    assert events.image is before


@pytest.mark.parametrize("election", ElectionType)
def test_a_partition_with_the_right_leader_needs_no_election(
    events: Controller, election: ElectionType
) -> None:
    before = events.image
    assert code(events.elect_leaders(election, [ZERO])[ZERO]) is ErrorCode.election_not_needed
    assert events.image is before


def test_an_election_of_an_unknown_partition_is_refused(events: Controller) -> None:
    missing = [TopicPartition("events", 2), TopicPartition("events", -1), TopicPartition("others", 0)]
    results = events.elect_leaders(PREFERRED, missing)
    assert {key: code(result) for key, result in results.items()} == dict.fromkeys(
        missing, ErrorCode.unknown_topic_or_partition
    )


def test_an_election_of_all_partitions_returns_only_those_that_needed_one(events: Controller) -> None:
    assert events.elect_leaders(PREFERRED, None) == {}
    events.fence(0)
    rejoin(events, 0, ZERO)
    version = events.image.version
    assert list(events.elect_leaders(PREFERRED, None)) == [ZERO]
    assert events.image.version == version + 1


def test_an_unclean_election_elects_any_live_replica_which_is_then_alone_in_sync(events: Controller) -> None:
    for broker_id in (2, 1, 0):
        events.fence(broker_id)
    events.heartbeat(2)
    events.heartbeat(1)
    before = events.image.partition(ZERO)
    assert before is not None
    assert (before.leader, before.in_sync) == (NO_LEADER, (0,))
    elected = events.elect_leaders(UNCLEAN, [ZERO])[ZERO]
    assert isinstance(elected, PartitionState)
    assert (elected.leader, elected.in_sync, elected.leader_epoch) == (1, (1,), before.leader_epoch + 1)


def test_an_unclean_election_needs_one_live_replica(events: Controller) -> None:
    for broker_id in range(3):
        events.fence(broker_id)
    results = events.elect_leaders(UNCLEAN, None)
    assert {key: code(result) for key, result in results.items()} == dict.fromkeys(
        [ZERO, ONE], ErrorCode.eligible_leaders_not_available
    )
