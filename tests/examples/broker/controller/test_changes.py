"""What the log says of a change of the metadata."""

import logging
from uuid import UUID

import pytest

from examples.broker.controller.changes import changes
from examples.broker.controller.controller import Controller
from examples.broker.metadata import NO_LEADER, BrokerRegistration, MetadataImage, PartitionState, TopicImage
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration


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
        (image(), image(brokers=(BrokerRegistration(2, "::1", 9093),)), ["broker 2 is live at [::1]:9093"]),
        (
            image(brokers=(BrokerRegistration(2, "host", 9093),)),
            image(brokers=(BrokerRegistration(2, "host", 9093, fenced=True),)),
            ["broker 2 is fenced"],
        ),
    ],
)
def test_each_change_is_a_line(before: MetadataImage, after: MetadataImage, lines: list[str]) -> None:
    assert list(changes(before, after)) == lines


def test_many_partitions_with_a_new_leader_are_one_line() -> None:
    before, after = image(topic(*[1] * 1000)), image(topic(*[2] * 1000))
    assert list(changes(before, after)) == [
        "broker 2 leads events-0, events-1, events-2 and 997 more, instead of broker 1"
    ]


def test_a_session_that_times_out_is_logged_with_its_consequences(
    controller: Controller, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    controller.register(registration(0))
    with caplog.at_level(logging.INFO, "examples.broker"):
        clock.advance(9)
    assert caplog.messages == ["broker 0 has sent no heartbeat for 9 s", "broker 0 is fenced"]
