"""The names of the topics, and the levels."""

import pytest

from examples.delayed.settings import LEVELS, Topics, duration


@pytest.mark.parametrize(
    ("milliseconds", "name"),
    [(5_000, "5s"), (60_000, "1m"), (90_000, "90s"), (3_600_000, "1h"), (200, "200ms"), (1_500, "1500ms")],
)
def test_a_duration_is_named_in_the_largest_unit_that_needs_no_fraction(milliseconds: int, name: str) -> None:
    assert duration(milliseconds) == name


def test_the_levels_are_those_of_the_documentation() -> None:
    names = " ".join(duration(level) for level in LEVELS)
    assert names == "5s 10s 30s 1m 2m 5m 10m 20m 30m 45m 1h 2h"
    assert Topics().level(LEVELS[0]) == "delayed-5s"


def test_all_topics_of_the_service_begin_with_its_name() -> None:
    topics = Topics("later")
    assert (topics.rejected, topics.done, topics.group("x")) == ("later-rejected", "later-done", "later-x")
    assert topics.owns("later")
    assert topics.owns("later-30s")
    assert not topics.owns("laterally")
