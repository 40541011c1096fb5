"""New topics and partitions: the placement of replicas, names and refusals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import NewPartitions, NewTopic, place
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig, TopicImage

BROKERS = st.integers(1, 6)


@pytest.fixture
def events(three: Controller) -> TopicImage:
    """A topic of two partitions with two replicas each."""
    return three.create(NewTopic("events", assignment=((1, 2), (2, 0))))


def refusal(controller: Controller, new: NewTopic | NewPartitions) -> ApiError:
    before = controller.image
    with pytest.raises(ApiError) as planned:
        controller.planned(new)
    with pytest.raises(ApiError) as created:
        controller.create(new)
    assert controller.image is before
    assert planned.value.code is created.value.code
    return created.value


def test_brokers_lead_in_turn_and_topics_start_at_different_brokers(three: Controller) -> None:
    leaders = [[state.leader for state in three.create(NewTopic(name, 6, 2)).partitions] for name in "abc"]
    assert leaders == [[0, 1, 2, 0, 1, 2], [1, 2, 0, 1, 2, 0], [2, 0, 1, 2, 0, 1]]


def test_missing_sizes_are_the_clusters_defaults(three: Controller) -> None:
    config = TopicConfig(min_insync_replicas=2)
    three.defaults = ClusterDefaults(num_partitions=4, default_replication_factor=3, topic_config=config)
    topic = three.create(NewTopic("events"))
    assert [len(state.replicas) for state in topic.partitions] == [3, 3, 3, 3]
    assert topic.config == config
    own = TopicConfig(min_insync_replicas=1)
    assert three.create(NewTopic("own", config=own)).config == own


def test_fenced_brokers_get_replicas_when_there_are_too_few_live_ones_and_lead_nothing(
    three: Controller,
) -> None:
    three.fence(0)
    for state in three.create(NewTopic("wide", 4, 3)).partitions:
        assert state.replicas[2] == 0
        assert set(state.in_sync) == {1, 2}
        assert state.leader == state.replicas[0]
    for state in three.create(NewTopic("narrow", 4, 2)).partitions:
        assert set(state.replicas) == {1, 2}


def test_a_given_assignment_is_used_unchanged_and_a_live_replica_leads(three: Controller) -> None:
    three.fence(0)
    topic = three.create(NewTopic("events", assignment=((2, 1), (0, 2))))
    assert [state.replicas for state in topic.partitions] == [(2, 1), (0, 2)]
    assert [(state.leader, state.in_sync) for state in topic.partitions] == [(2, (2, 1)), (2, (2,))]


@pytest.mark.parametrize("name", ["a", "...", "A.b_c-9", "x" * 249, "__consumer_offsets"])
def test_a_name_that_kafka_allows_is_accepted(three: Controller, name: str) -> None:
    assert three.create(NewTopic(name)).name == name


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        *(
            (NewTopic(name), ErrorCode.invalid_topic_exception)
            for name in ("", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250)
        ),
        (NewTopic("t", 0), ErrorCode.invalid_partitions),
        (NewTopic("t", -2), ErrorCode.invalid_partitions),
        (NewTopic("t", 1, 0), ErrorCode.invalid_replication_factor),
        (NewTopic("t", 1, 4), ErrorCode.invalid_replication_factor),
        (NewTopic("t", assignment=((),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 0),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 3),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 1), (2,))), ErrorCode.invalid_replica_assignment),
    ],
)
def test_an_impossible_topic_is_refused(three: Controller, topic: NewTopic, code: ErrorCode) -> None:
    assert refusal(three, topic).code is code


def test_a_topic_name_is_unique_until_the_topic_is_deleted(three: Controller) -> None:
    first = three.create(NewTopic("events"))
    assert refusal(three, NewTopic("events")).code is ErrorCode.topic_already_exists
    assert three.delete_topic("events") is first
    assert "events" not in three.image.topics
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        three.delete_topic("events")
    assert three.create(NewTopic("events")).topic_id != first.topic_id


@pytest.mark.parametrize(("first", "second"), [("q.r", "q_r"), ("q_r", "q.r"), ("a.b_c", "a_b.c")])
def test_topics_differ_in_more_than_dots_and_underscores(three: Controller, first: str, second: str) -> None:
    three.create(NewTopic(first))
    assert refusal(three, NewTopic(second)).code is ErrorCode.invalid_topic_exception
    three.create(NewTopic(second + "_"))


def test_the_known_partitions_stay_and_the_brokers_go_on_leading_in_turn(
    three: Controller, events: TopicImage
) -> None:
    grown = three.create(NewPartitions("events", 5))
    assert three.image.topics["events"] is grown
    assert grown == replace(events, partitions=grown.partitions)
    assert grown.partitions[:2] == events.partitions
    assert [state.leader for state in grown.partitions] == [1, 2, 0, 1, 2]
    for state in grown.partitions[2:]:
        assert (len(state.replicas), state.in_sync, state.leader_epoch) == (2, state.replicas, 0)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (NewPartitions("missing", 4), ErrorCode.unknown_topic_or_partition),
        (NewPartitions("events", 2), ErrorCode.invalid_partitions),
        (NewPartitions("events", 1), ErrorCode.invalid_partitions),
        (NewPartitions("events", -(2**31)), ErrorCode.invalid_partitions),
        (NewPartitions("events", 4, ((0, 1),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ()), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ((0,),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 4, ((0, 1), (2, 2))), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3, ((0, 9),)), ErrorCode.invalid_replica_assignment),
    ],
)
def test_impossible_partitions_are_refused(
    three: Controller, events: TopicImage, more: NewPartitions, error: ErrorCode
) -> None:
    refused = refusal(three, more)
    assert refused.code is error
    assert "a broker twice" not in str(refused) or "partition 3 is assigned" in str(refused)


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("t"), ErrorCode.invalid_replication_factor),
        (NewTopic("t", assignment=((0, 1),)), ErrorCode.invalid_replica_assignment),
        (NewPartitions("events", 3), ErrorCode.invalid_replication_factor),
    ],
)
def test_without_a_live_broker_nothing_is_created(
    three: Controller, events: TopicImage, new: NewTopic | NewPartitions, error: ErrorCode
) -> None:
    for broker_id in range(3):
        three.fence(broker_id)
    assert refusal(three, new).code is error


@given(
    live=BROKERS,
    fenced=st.integers(0, 3),
    partitions=st.integers(1, 40),
    start=st.integers(0, 50),
    data=st.data(),
)
def test_replicas_are_different_brokers_live_ones_first(
    live: int, fenced: int, partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, live + fenced))
    at_rest = range(live, live + fenced)
    placed = place(range(live), at_rest, partitions, factor, start)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas[:live]) <= set(range(live))
        assert set(replicas[live:]) <= set(at_rest)


@given(live=st.integers(2, 6))
def test_the_partitions_of_one_leader_are_followed_by_all_the_others(live: int) -> None:
    placed = place(range(live), (), live * (live - 1), 2, 0)
    assert len(set(placed)) == live * (live - 1)
