"""A broker's metadata cache, and the lines of the log about a new image.

The model of the controller checks the changes that a cache finds in images.
"""

import logging
from uuid import UUID

import pytest

from examples.broker.controller.controller import Controller
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta, changes
from examples.broker.controller.new_topic import NewPartitions, NewTopic
from examples.broker.metadata import (
    NO_LEADER,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicConfig,
    TopicImage,
)
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration

ZERO, ONE = TopicPartition("events", 0), TopicPartition("events", 1)


@pytest.fixture
def cache(three: Controller) -> MetadataCache:
    """The cache of broker 1, with a topic of two partitions that brokers 0 and 1 lead."""
    three.create(NewTopic("events", assignment=((0, 1), (1, 2))))
    cache = MetadataCache(1)
    cache.update(three.image)
    return cache


def test_a_topic_deleted_and_created_again_is_both_deleted_and_changed(
    controller: Controller, cache: MetadataCache
) -> None:
    old = controller.delete_topic("events")
    new = controller.create(NewTopic("events", assignment=((0, 1),)))
    delta = cache.update(controller.image)
    assert delta == TopicsDelta(frozenset({ZERO, ONE}), {ZERO: new.partitions[0]})
    assert (cache.holds(new), cache.lacks(old)) == (True, True)


def test_a_changed_configuration_changes_every_partition(
    controller: Controller, cache: MetadataCache
) -> None:
    before = dict(cache.image.partitions())
    controller.alter_topic_config("events", TopicConfig(segment_bytes=500))
    assert cache.update(controller.image) == TopicsDelta(frozenset(), before)


def test_a_topic_is_shown_when_all_its_partitions_are_known(
    controller: Controller, cache: MetadataCache
) -> None:
    grown = controller.create(NewPartitions("events", 3))
    assert cache.holds(grown)
    assert not cache.shows(grown)
    assert cache.update(controller.image).changed.keys() == {TopicPartition("events", 2)}
    assert cache.shows(grown)
    controller.create(NewPartitions("events", 4))
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
    seen = [cache.controller_id]
    for broker_id in (1, 0, 2):
        controller.fence(broker_id)
        cache.update(controller.image)
        seen.append(cache.controller_id)
    assert seen == [1, 0, 2, NO_LEADER]
    assert cache.image.live_brokers == {}


def image(*topics: TopicImage, brokers: tuple[BrokerRegistration, ...] = ()) -> MetadataImage:
    return MetadataImage(
        brokers={broker.broker_id: broker for broker in brokers},
        topics={topic.name: topic for topic in topics},
    )


def topic(*leaders: int, in_sync: tuple[int, ...] = (1, 2)) -> TopicImage:
    partitions = tuple(PartitionState((1, 2), in_sync, leader) for leader in leaders)
    return TopicImage("events", UUID(int=1), partitions)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (image(), image(topic(1, 2)), ["topic 'events' is created, partitions: 2"]),
        (image(topic(1)), image(), ["topic 'events' is deleted"]),
        (image(topic(1, 1)), image(topic(1, 2)), ["broker 2 leads events-1, instead of broker 1"]),
        (image(topic(1)), image(topic(NO_LEADER)), ["nobody leads events-0, instead of broker 1"]),
        (image(topic(NO_LEADER)), image(topic(2)), ["broker 2 leads events-0"]),
        (image(topic(1)), image(topic(1, in_sync=(1,))), []),
        (
            image(topic(*[1] * 1000)),
            image(topic(*[2] * 1000)),
            ["broker 2 leads events-0, events-1, events-2 and 997 more, instead of broker 1"],
        ),
        (image(), image(brokers=(BrokerRegistration(2, "::1", 9093),)), ["broker 2 is live at [::1]:9093"]),
        (
            image(brokers=(BrokerRegistration(2, "host", 9093),)),
            image(brokers=(BrokerRegistration(2, "host", 9093, fenced=True),)),
            ["broker 2 is fenced"],
        ),
    ],
)
def test_each_change_is_a_line_of_the_log(
    before: MetadataImage, after: MetadataImage, lines: list[str]
) -> None:
    assert list(changes(before, after)) == lines


def test_a_session_that_times_out_is_logged_with_its_consequences(
    controller: Controller, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    controller.register(registration(0))
    with caplog.at_level(logging.INFO, "examples.broker"):
        clock.advance(9)
    assert caplog.messages == ["broker 0 has sent no heartbeat for 9 s", "broker 0 is fenced"]
