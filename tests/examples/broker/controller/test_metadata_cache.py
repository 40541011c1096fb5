"""A broker's metadata cache: the changes that it finds in an image."""

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.controller.new_partitions import NewPartitions
from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import NO_LEADER, TopicConfig
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.controller.controlled_cluster import registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)


@pytest.fixture
def cache(controller: Controller) -> MetadataCache:
    """The cache of broker 1, with a topic of two partitions that brokers 0 and 1 lead."""
    for broker_id in range(3):
        controller.register(registration(broker_id))
    controller.create_topic(NewTopic("events", assignment=((0, 1), (1, 2))))
    cache = MetadataCache(1)
    delta = cache.update(controller.image)
    assert delta == TopicsDelta(frozenset(), dict(controller.image.partitions()))
    return cache


def test_an_update_returns_exactly_the_changed_partitions(
    controller: Controller, cache: MetadataCache
) -> None:
    controller.fence(0)
    state = controller.image.partition(ZERO)
    assert state is not None
    assert cache.update(controller.image) == TopicsDelta(frozenset(), {ZERO: state})


def test_an_update_returns_the_partitions_of_a_deleted_topic(
    controller: Controller, cache: MetadataCache
) -> None:
    controller.delete_topic("events")
    assert cache.update(controller.image) == TopicsDelta(frozenset({ZERO, ONE}), {})


def test_a_topic_deleted_and_created_again_is_both_deleted_and_changed(
    controller: Controller, cache: MetadataCache
) -> None:
    old = controller.delete_topic("events")
    new = controller.create_topic(NewTopic("events", assignment=((0, 1),)))
    delta = cache.update(controller.image)
    assert delta == TopicsDelta(frozenset({ZERO, ONE}), {ZERO: new.partitions[0]})
    assert cache.holds(new)
    assert not cache.holds(old)


def test_a_changed_configuration_changes_every_partition(
    controller: Controller, cache: MetadataCache
) -> None:
    before = dict(cache.image.partitions())
    controller.alter_topic_config("events", TopicConfig(segment_bytes=500))
    assert cache.update(controller.image) == TopicsDelta(frozenset(), before)


def test_a_topic_is_shown_when_all_its_partitions_are_known(
    controller: Controller, cache: MetadataCache
) -> None:
    grown = controller.create_partitions(NewPartitions("events", 3))
    assert cache.holds(grown)
    assert not cache.shows(grown)
    assert cache.update(controller.image).changed.keys() == {TopicPartition("events", 2)}
    assert cache.shows(grown)
    controller.create_partitions(NewPartitions("events", 4))
    cache.update(controller.image)
    assert cache.shows(grown)


def test_an_older_image_is_ignored(controller: Controller, cache: MetadataCache) -> None:
    older = cache.image
    controller.delete_topic("events")
    cache.update(controller.image)
    assert cache.update(older) == TopicsDelta()
    assert cache.image is controller.image


def test_clients_see_this_broker_as_the_controller_or_another_while_it_is_fenced(
    controller: Controller, cache: MetadataCache
) -> None:
    assert cache.controller_id == 1
    controller.fence(1)
    cache.update(controller.image)
    assert cache.controller_id == 0
    controller.fence(0)
    controller.fence(2)
    cache.update(controller.image)
    assert cache.controller_id == NO_LEADER
    assert cache.image.live_brokers == {}
