"""The controller: sessions of brokers, elections, in-sync replicas, and the images that brokers wait for.

The model checks what holds after any events. These are the cases that it does not distinguish.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.broker.controller.controller import Controller
from examples.broker.controller.election import ElectionType
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, MetadataImage, PartitionState
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.controller.controlled_cluster import registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
FRESH = PartitionState((0, 1, 2), (0, 1, 2), 0)


@pytest.fixture
def events(three: Controller) -> Controller:
    """A topic with two partitions on three brokers, led by brokers 0 and 1. Broker 3 has no replica."""
    three.register(registration(3))
    three.create(NewTopic("events", assignment=((0, 1, 2), (1, 2, 0))))
    return three


def state(controller: Controller) -> PartitionState:
    found = controller.image.partition(ZERO)
    assert found is not None
    return found


def rejoin(controller: Controller, broker_id: int) -> None:
    """Unfence the broker, and add it to the in-sync replicas."""
    controller.heartbeat(broker_id)
    now = state(controller)
    controller.alter_partition(now.leader, ZERO, replace(now, in_sync=(*now.in_sync, broker_id)))


def test_what_changes_nothing_publishes_no_image(three: Controller) -> None:
    three.fence(0)
    before = three.image
    three.heartbeat(1)
    three.fence(0)
    three.fence(7)
    assert three.image is before


def test_a_heartbeat_of_an_unregistered_broker_is_an_error(controller: Controller) -> None:
    with pytest.raises(KeyError):
        controller.heartbeat(0)


def test_a_broker_may_come_back_at_another_address(controller: Controller) -> None:
    controller.register(registration(0))
    moved = replace(registration(5), broker_id=0)
    controller.register(replace(moved, fenced=True))
    assert controller.image.brokers[0] == moved


@pytest.mark.parametrize("lose", [Controller.fence, lambda events, _: events.register(registration(0))])
def test_the_next_in_sync_replica_leads_in_place_of_a_broker_that_is_fenced_or_restarts(
    events: Controller, lose: Callable[[Controller, int], None]
) -> None:
    lose(events, 0)
    assert state(events) == PartitionState((0, 1, 2), (1, 2), 1, leader_epoch=1, partition_epoch=2)


def test_a_fenced_follower_leaves_the_in_sync_replicas_without_a_new_leader_epoch(events: Controller) -> None:
    events.fence(1)
    assert state(events) == PartitionState((0, 1, 2), (0, 2), 0, leader_epoch=0, partition_epoch=1)


def test_a_restarted_broker_that_is_alone_in_sync_leads_in_a_new_epoch(controller: Controller) -> None:
    controller.register(registration(0))
    controller.create(NewTopic("events", 1, 1))
    controller.register(registration(0))
    assert (state(controller).leader, state(controller).leader_epoch) == (0, 2)


def test_a_change_leaves_other_topics_the_same_objects(events: Controller) -> None:
    before = events.image.topics["events"]
    events.fence(3)
    assert events.image.topics["events"] is before


def test_the_preferred_leader_leads_again_once_it_is_back_in_sync(events: Controller) -> None:
    assert events.elect_leaders(PREFERRED, None) == {}
    events.fence(0)
    rejoin(events, 0)
    before, version = state(events), events.image.version
    assert before.leader == 1
    assert events.elect_leaders(PREFERRED, None) == {ZERO: before.led_by(0)}
    assert state(events) == before.led_by(0)
    assert events.image.version == version + 1


@pytest.mark.parametrize(
    ("fenced", "back", "election", "error"),
    [
        ([], [], PREFERRED, ErrorCode.election_not_needed),
        ([], [], UNCLEAN, ErrorCode.election_not_needed),
        ([0], [], PREFERRED, ErrorCode.preferred_leader_not_available),
        ([0], [0], PREFERRED, ErrorCode.preferred_leader_not_available),
        ([0, 1, 2], [], UNCLEAN, ErrorCode.eligible_leaders_not_available),
    ],
)
def test_an_impossible_election_changes_nothing(
    events: Controller,
    fenced: Sequence[int],
    back: Sequence[int],
    election: ElectionType,
    error: ErrorCode,
) -> None:
    for broker_id in fenced:
        events.fence(broker_id)
    for broker_id in back:
        events.heartbeat(broker_id)
    before = events.image
    missing = TopicPartition("events", -1)
    results = events.elect_leaders(election, [ZERO, missing])
    codes = {entry: result.code for entry, result in results.items() if isinstance(result, ApiError)}
    assert codes == {ZERO: error, missing: ErrorCode.unknown_topic_or_partition}
    assert events.image is before


def test_an_unclean_election_elects_any_live_replica_which_is_then_alone_in_sync(events: Controller) -> None:
    for broker_id in (2, 1, 0):
        events.fence(broker_id)
    events.heartbeat(2)
    events.heartbeat(1)
    before = state(events)
    assert (before.leader, before.in_sync) == (NO_LEADER, (0,))
    assert events.elect_leaders(UNCLEAN, [ZERO]) == {ZERO: before.led_by(1).with_in_sync((1,))}


@pytest.mark.parametrize(
    ("broker_id", "wanted", "error"),
    [
        (1, replace(FRESH, in_sync=(1,)), ErrorCode.fenced_leader_epoch),
        (0, replace(FRESH, leader_epoch=1), ErrorCode.fenced_leader_epoch),
        (0, replace(FRESH, partition_epoch=1), ErrorCode.invalid_update_version),
        (0, replace(FRESH, in_sync=()), ErrorCode.invalid_request),
        (0, replace(FRESH, in_sync=(1, 2)), ErrorCode.invalid_request),
        (0, replace(FRESH, in_sync=(0, 3)), ErrorCode.invalid_request),
    ],
)
def test_an_impossible_change_of_the_in_sync_replicas_is_refused(
    events: Controller, broker_id: int, wanted: PartitionState, error: ErrorCode
) -> None:
    before = events.image
    with pytest.raises(ApiError) as refused:
        events.alter_partition(broker_id, ZERO, wanted)
    assert refused.value.code is error
    assert events.image is before


def test_a_fenced_broker_does_not_join_nor_anybody_in_an_unknown_partition(events: Controller) -> None:
    events.fence(1)
    with pytest.raises(ApiError, match="INELIGIBLE_REPLICA"):
        events.alter_partition(0, ZERO, replace(state(events), in_sync=(0, 1, 2)))
    events.delete_topic("events")
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        events.alter_partition(0, ZERO, FRESH)


async def test_changes_in_one_loop_iteration_arrive_as_one_image(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults()) as controller:
        waiting = asyncio.create_task(controller.image_after(0))
        await asyncio.sleep(0)
        for broker_id in range(3):
            controller.register(registration(broker_id))
        controller.create(NewTopic("events"))
        image = await waiting
        assert image is controller.image
        assert (list(image.brokers), list(image.topics)) == ([0, 1, 2], ["events"])


async def test_closing_withdraws_the_sessions_and_fences_nobody(virtual_time: VirtualTimeLoop) -> None:
    async with Controller.running(ClusterDefaults()) as controller:
        controller.register(registration(0))
        waiting = asyncio.create_task(controller.image_after(controller.image.version))
        await asyncio.sleep(0)
        image = controller.image
    assert controller.image is image
    assert controller.session_purgatory.statistics().pending == 0
    with pytest.raises(TimeoutError):
        await waiting


@given(turns=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=10), sleeps=st.data())
@settings(max_examples=50, deadline=None)
def test_every_listener_gets_the_last_image_and_none_twice(
    turns: list[list[int]], sleeps: st.DataObject
) -> None:
    """In each iteration of the loop some brokers register. The listeners have different delays."""
    delays = sleeps.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3))

    async def scenario() -> None:
        async with Controller.running(ClusterDefaults()) as controller:
            seen: list[list[MetadataImage]] = [[], [], []]

            async def listen(images: list[MetadataImage], delay: int) -> None:
                version = -1
                while True:
                    images.append(await controller.image_after(version))
                    version = images[-1].version
                    await asyncio.sleep(delay)

            listeners = [asyncio.create_task(listen(*pair)) for pair in zip(seen, delays, strict=True)]
            for turn in turns:
                for broker_id in turn:
                    controller.register(registration(broker_id))
                await asyncio.sleep(0)
            await asyncio.sleep(4)
            for images in seen:
                assert images[-1] is controller.image
                assert all(older.version < newer.version for older, newer in itertools.pairwise(images))
            for listener in listeners:
                listener.cancel()
            await asyncio.wait(listeners)
            assert controller.image_purgatory.statistics().pending == 0

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario())
