"""New topics: replicas, names and refusals."""

from dataclasses import replace

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import MAX_PARTITIONS, NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import TopicConfig
from tests.examples.broker.controller.controlled_cluster import registration


@pytest.fixture
def three(controller: Controller) -> Controller:
    """A cluster of three brokers."""
    for broker_id in range(3):
        controller.register(registration(broker_id))
    return controller


def refusal(controller: Controller, topic: NewTopic) -> ErrorCode:
    before = controller.image
    with pytest.raises(ApiError) as planned:
        controller.plan_topic(topic)
    with pytest.raises(ApiError) as created:
        controller.create_topic(topic)
    assert controller.image is before
    assert planned.value.code is created.value.code
    return created.value.code


def test_brokers_lead_in_turn_and_topics_start_at_different_brokers(three: Controller) -> None:
    leaders = [
        [state.leader for state in three.create_topic(NewTopic(name, 6, 2)).partitions] for name in "abc"
    ]
    assert leaders == [[0, 1, 2, 0, 1, 2], [1, 2, 0, 1, 2, 0], [2, 0, 1, 2, 0, 1]]


def test_a_new_partition_is_led_by_its_preferred_replica_with_all_in_sync(three: Controller) -> None:
    for state in three.create_topic(NewTopic("events", 7, 3)).partitions:
        assert state.leader == state.replicas[0]
        assert state.in_sync == state.replicas
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)


def test_missing_sizes_are_the_clusters_defaults(three: Controller) -> None:
    config = TopicConfig(min_insync_replicas=2)
    three.defaults = ClusterDefaults(num_partitions=4, default_replication_factor=3, topic_config=config)
    topic = three.create_topic(NewTopic("events"))
    assert [len(state.replicas) for state in topic.partitions] == [3, 3, 3, 3]
    assert topic.config == config
    own = TopicConfig(min_insync_replicas=1)
    assert three.create_topic(NewTopic("own", config=own)).config == own


def test_a_given_assignment_is_used_unchanged(three: Controller) -> None:
    topic = three.create_topic(NewTopic("events", assignment=((2, 1), (0, 2))))
    assert [state.replicas for state in topic.partitions] == [(2, 1), (0, 2)]
    assert [state.leader for state in topic.partitions] == [2, 0]


def test_fenced_brokers_get_replicas_when_there_are_too_few_live_ones_and_lead_nothing(
    three: Controller,
) -> None:
    three.fence(0)
    for state in three.create_topic(NewTopic("wide", 4, 3)).partitions:
        assert state.replicas[2] == 0
        assert set(state.in_sync) == {1, 2}
        assert state.leader == state.replicas[0]
    for state in three.create_topic(NewTopic("narrow", 4, 2)).partitions:
        assert set(state.replicas) == {1, 2}


def test_a_live_replica_leads_where_the_assigned_leader_is_fenced(three: Controller) -> None:
    three.fence(0)
    (state,) = three.create_topic(NewTopic("events", assignment=((0, 2, 1),))).partitions
    assert (state.leader, state.in_sync) == (2, (2, 1))


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "x" * 250])
def test_a_name_that_kafka_forbids_is_refused(three: Controller, name: str) -> None:
    assert refusal(three, NewTopic(name)) is ErrorCode.invalid_topic_exception


@pytest.mark.parametrize("name", ["a", "...", "A.b_c-9", "x" * 249, "__consumer_offsets"])
def test_a_name_that_kafka_allows_is_accepted(three: Controller, name: str) -> None:
    assert three.create_topic(NewTopic(name)).name == name


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("t", 0), ErrorCode.invalid_partitions),
        (NewTopic("t", -2), ErrorCode.invalid_partitions),
        (NewTopic("t", MAX_PARTITIONS + 1), ErrorCode.policy_violation),
        (NewTopic("t", 1, 0), ErrorCode.invalid_replication_factor),
        (NewTopic("t", 1, 4), ErrorCode.invalid_replication_factor),
        (NewTopic("t", assignment=((),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 0),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 3),)), ErrorCode.invalid_replica_assignment),
        (NewTopic("t", assignment=((0, 1), (2,))), ErrorCode.invalid_replica_assignment),
    ],
)
def test_an_impossible_topic_is_refused(three: Controller, topic: NewTopic, code: ErrorCode) -> None:
    assert refusal(three, topic) is code


def test_without_live_brokers_no_topic_is_created(three: Controller) -> None:
    assert three.create_topic(NewTopic("last", MAX_PARTITIONS, 3)).name == "last"
    for broker_id in range(3):
        three.fence(broker_id)
    assert refusal(three, NewTopic("t")) is ErrorCode.invalid_replication_factor
    assigned = NewTopic("t", assignment=((0, 1),))
    assert refusal(three, assigned) is ErrorCode.invalid_replica_assignment


def test_a_topic_name_is_unique_until_the_topic_is_deleted(three: Controller) -> None:
    first = three.create_topic(NewTopic("events"))
    assert refusal(three, NewTopic("events")) is ErrorCode.topic_already_exists
    assert three.delete_topic("events") is first
    assert "events" not in three.image.topics
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        three.delete_topic("events")
    assert three.create_topic(NewTopic("events")).topic_id != first.topic_id


@pytest.mark.parametrize(("first", "second"), [("q.r", "q_r"), ("q_r", "q.r"), ("a.b_c", "a_b.c")])
def test_topics_differ_in_more_than_dots_and_underscores(three: Controller, first: str, second: str) -> None:
    three.create_topic(NewTopic(first))
    assert refusal(three, NewTopic(second)) is ErrorCode.invalid_topic_exception
    three.create_topic(NewTopic(second + "_"))


def test_a_plan_changes_nothing(three: Controller) -> None:
    before = three.image
    planned = three.plan_topic(NewTopic("events", 2, 2))
    assert three.image is before
    created = three.create_topic(NewTopic("events", 2, 2))
    assert replace(planned, topic_id=created.topic_id) == created


def test_producer_ids_are_unique(three: Controller) -> None:
    assert len({three.next_producer_id() for _ in range(100)}) == 100
