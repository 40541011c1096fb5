"""What the advisor says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from purgatory.pipeline.advice import Advice, duration

KNOWN = Advice(
    purgatory="fetch",
    kind="DelayedFetch",
    key=None,
    operations=20_000,
    followed_us=5_000_000,
    known_share=0.9999,
    share=0.999,
    timeout_us=1_210_000,
    timeout_low_us=1_100_000,
    timeout_high_us=1_300_000,
    naive_us=400_000,
    more_completed=1203.4,
    waited_less_us=-312e6,
)
UNKNOWN = replace(KNOWN, timeout_us=None, more_completed=None, waited_less_us=None)


def test_sentence_says_what_the_timeout_would_change() -> None:
    assert KNOWN.sentence() == (
        "With a timeout of 1.21 s, 99.9 % of DelayedFetch in fetch complete: of these 20,000 operations "
        "1,203 more would have completed, and all together would have waited 5.20 min more."
    )


def test_fewer_complete_and_wait_less() -> None:
    sentence = replace(KNOWN, more_completed=-3.0, waited_less_us=30_000.0).sentence()
    assert "3 fewer would have completed, and all together would have waited 30.0 ms less." in sentence


def test_change_of_less_than_half_an_operation_is_none() -> None:
    assert "as many would have completed" in replace(KNOWN, more_completed=-0.4).sentence()


def test_sentence_names_the_key() -> None:
    assert "99.9 % of DelayedFetch in fetch on orders-7 complete" in replace(KNOWN, key="orders-7").sentence()


def test_sentence_says_where_knowledge_ends() -> None:
    assert replace(UNKNOWN, share=0.99, known_share=0.8391).sentence() == (
        "The timeout by which 99 % of DelayedFetch in fetch complete is not identifiable beyond 5.00 s, "
        "the longest wait recorded: 83.91 % complete within it."
    )


@pytest.mark.parametrize(("known", "said"), [(0.99899, "99.89 %"), (0.29, "29 %"), (0.0, "0 %")])
def test_known_share_is_not_rounded_up(known: float, said: str) -> None:
    assert f": {said} complete within it" in replace(UNKNOWN, known_share=known).sentence()


def test_timeout_that_is_not_known_is_longer_than_what_is() -> None:
    assert KNOWN.timeout == "1.21 s"
    assert UNKNOWN.timeout == "> 5.00 s"


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.00 ms"),
        (12_345, "12.3 ms"),
        (999_900, "1,000 ms"),
        (1_000_000, "1.00 s"),
        (119_000_000, "119 s"),
        (120_000_000, "2.00 min"),
        (7_200_000_000, "2.00 h"),
        (7.2e13, "20,000 h"),
    ],
)
def test_durations_have_three_figures_and_the_unit_that_suits(microseconds: float, said: str) -> None:
    assert duration(microseconds) == said
