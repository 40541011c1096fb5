"""More partitions for a topic that exists: placement and refusals."""

import asyncio
from dataclasses import replace

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_partitions import NewPartitions
from examples.broker.controller.new_topic import MAX_PARTITIONS, NewTopic
from examples.broker.errors import ApiError, ErrorCode
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import ControlledCluster, registration


@pytest.fixture
def three(controller: Controller) -> Controller:
    """A cluster of three brokers, and a topic of two partitions with two replicas each."""
    for broker_id in range(3):
        controller.register(registration(broker_id))
    controller.create_topic(NewTopic("events", assignment=((1, 2), (2, 0))))
    return controller


def refusal(controller: Controller, more: NewPartitions) -> ErrorCode:
    before = controller.image
    for attempt in (controller.plan_partitions, controller.create_partitions):
        with pytest.raises(ApiError) as refused:
            attempt(more)
    assert controller.image is before
    return refused.value.code


def test_the_known_partitions_stay_and_the_brokers_go_on_leading_in_turn(three: Controller) -> None:
    before = three.image.topics["events"]
    grown = three.create_partitions(NewPartitions("events", 5))
    assert three.image.topics["events"] is grown
    assert grown == replace(before, partitions=grown.partitions)
    assert grown.partitions[:2] == before.partitions
    assert [state.leader for state in grown.partitions] == [1, 2, 0, 1, 2]
    for state in grown.partitions[2:]:
        assert (len(state.replicas), state.in_sync, state.leader_epoch) == (2, state.replicas, 0)


def test_new_partitions_can_be_assigned(three: Controller) -> None:
    grown = three.create_partitions(NewPartitions("events", 4, ((0, 1), (2, 1))))
    assert [state.replicas for state in grown.partitions[2:]] == [(0, 1), (2, 1)]


def test_a_fenced_broker_leads_no_new_partition(three: Controller) -> None:
    three.fence(1)
    grown = three.create_partitions(NewPartitions("events", 6))
    assert {state.leader for state in grown.partitions[2:]} == {0, 2}
    assert all(state.in_sync == state.replicas for state in grown.partitions[2:])


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (NewPartitions("missing", 4), ErrorCode.unknown_topic_or_partition),
        (NewPartitions("events", 2), ErrorCode.invalid_partitions),
        (NewPartitions("events", 1), ErrorCode.invalid_partitions),
        (NewPartitions("events", -(2**31)), ErrorCode.invalid_partitions),
        (NewPartitions("events", MAX_PARTITIONS + 3), ErrorCode.policy_violation),
        (NewPartitions("events", 4, ((0, 1),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ()), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ((0,),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ((0, 0),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ((0, 9),)), ErrorCode.invalid_replica_assignment),
    ],
)
def test_impossible_partitions_are_refused(three: Controller, more: NewPartitions, error: ErrorCode) -> None:
    assert refusal(three, more) is error


def test_a_refused_assignment_names_the_new_partition(three: Controller) -> None:
    with pytest.raises(ApiError, match="partition 3 is assigned a broker twice"):
        three.create_partitions(NewPartitions("events", 4, ((0, 1), (2, 2))))


def test_without_a_live_broker_there_are_no_new_partitions(three: Controller) -> None:
    for broker_id in range(3):
        three.fence(broker_id)
    assert refusal(three, NewPartitions("events", 3)) is ErrorCode.invalid_replication_factor


async def test_an_addition_is_answered_when_this_broker_knows_the_partitions(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with ControlledCluster.running() as cluster:
        admin = cluster.admins[0]
        await admin.create_topics([NewTopic("events")], 5)
        cluster.pause(0)
        addition = asyncio.create_task(admin.create_partitions([NewPartitions("events", 3)], 3))
        await asyncio.sleep(2)
        assert not addition.done()
        cluster.resume(0)
        assert (await addition)["events"] == admin.cache.image.topics["events"]
        assert len(admin.cache.image.topics["events"].partitions) == 3
        assert virtual_time.time() == 2


async def test_an_addition_not_in_the_brokers_metadata_times_out(virtual_time: VirtualTimeLoop) -> None:
    async with ControlledCluster.running() as cluster:
        admin = cluster.admins[0]
        await admin.create_topics([NewTopic("events")], 5)
        cluster.pause(0)
        late = (await admin.create_partitions([NewPartitions("events", 3)], 3))["events"]
        assert isinstance(late, ApiError)
        assert late.code is ErrorCode.request_timed_out
        assert virtual_time.time() == pytest.approx(3, abs=0.001)
        cluster.resume(0)
