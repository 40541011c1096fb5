"""The sentences and durations of the advice."""

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


def test_a_sentence_explains_the_effect_of_the_timeout() -> None:
    assert KNOWN.sentence() == (
        "With a timeout of 1.21 s, 99.9 % of DelayedFetch in fetch complete: of these 20,000 operations "
        "1,203 more would have completed, and all together would have waited 5.20 min more."
    )


def test_fewer_completions_and_shorter_waits_are_explained() -> None:
    sentence = replace(KNOWN, more_completed=-3.0, waited_less_us=30_000.0).sentence()
    assert "3 fewer would have completed, and all together would have waited 30.0 ms less." in sentence


def test_a_change_of_less_than_half_an_operation_is_no_change() -> None:
    assert "as many would have completed" in replace(KNOWN, more_completed=-0.4).sentence()


def test_a_sentence_names_the_key() -> None:
    assert "99.9 % of DelayedFetch in fetch on orders-7 complete" in replace(KNOWN, key="orders-7").sentence()


def test_a_sentence_says_when_the_timeout_is_not_identifiable() -> None:
    assert replace(UNKNOWN, share=0.99, known_share=0.8391).sentence() == (
        "The timeout by which 99 % of DelayedFetch in fetch complete is not identifiable beyond 5.00 s, "
        "the longest wait recorded: 83.91 % complete within it."
    )


@pytest.mark.parametrize(("known", "printed"), [(0.99899, "99.89 %"), (0.29, "29 %"), (0.0, "0 %")])
def test_the_known_share_is_rounded_down(known: float, printed: str) -> None:
    assert f": {printed} complete within it" in replace(UNKNOWN, known_share=known).sentence()


def test_an_unidentifiable_timeout_is_printed_as_longer_than_the_longest_wait() -> None:
    assert KNOWN.timeout == "1.21 s"
    assert UNKNOWN.timeout == "> 5.00 s"


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_000, "1.00 ms"),
        (12_345, "12.3 ms"),
        (999_900, "1,000 ms"),
        (1_000_000, "1.00 s"),
        (10_000_000, "10.0 s"),
        (100_000_000, "100 s"),
        (119_000_000, "119 s"),
        (120_000_000, "2.00 min"),
        (7_200_000_000, "2.00 h"),
        (7.2e13, "20,000 h"),
    ],
)
def test_durations_have_three_digits_and_a_fitting_unit(microseconds: float, text: str) -> None:
    assert duration(microseconds) == text
