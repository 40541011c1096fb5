"""What is set in relation to what."""

from __future__ import annotations

import pytest

from tests.benchmarks.fakes import answer, contender

REFERENCE, OTHER = contender("purgatory"), contender("other")
ELSEWHERE = contender("purgatory", section="tasks")


def test_a_ratio_is_to_the_first_of_the_section_within_the_same_repetition() -> None:
    given = answer(
        {
            REFERENCE: [{"us": 1.0}, {"us": 2.0}],
            OTHER: [{"us": 3.0}, {"us": 3.0}],
            ELSEWHERE: [{"us": 9.0}, {"us": 9.0}],
        }
    )
    assert given.reference(OTHER) is REFERENCE
    assert given.ratios(OTHER, "us") == [3.0, 1.5]
    assert given.ratios(ELSEWHERE, "us") == [1.0, 1.0]


def test_who_was_measured_less_often_is_compared_with_as_many() -> None:
    given = answer({REFERENCE: [{"us": 1.0}, {"us": 2.0}, {"us": 4.0}], OTHER: [{"us": 3.0}, {"us": 3.0}]})
    assert given.ratios(OTHER, "us") == [3.0, 1.5]


@pytest.mark.parametrize("of_the_first", [{"us": 0.0}, {}], ids=["nothing", "no figure"])
def test_to_nothing_there_is_no_ratio(of_the_first: dict[str, float]) -> None:
    assert answer({REFERENCE: [of_the_first], OTHER: [{"us": 3.0}]}).ratios(OTHER, "us") == []
