"""The words for readings of a curve, and for the effects of a timeout."""

from __future__ import annotations

from dataclasses import replace

from purgatory.pipeline.advise.evidence import Effect
from tests.pipeline.advise.test_verdict import P99

EFFECT = Effect(
    completes=0.999,
    completes_low=0.998,
    completes_high=0.9995,
    more_completed=1203.4,
    more_completed_low=1180.6,
    more_completed_high=1220.0,
    waited_less_us=-312e6,
)


def test_a_sentence_explains_the_effect_of_a_timeout() -> None:
    assert EFFECT.sentence(20_000) == (
        "99.9 % would complete (99.8 % to 99.95 %). Of 20,000 recorded operations, 1,203 more "
        "(+1,181 to +1,220) would have completed. All together would have waited 5 min 12 s more."
    )


def test_fewer_completions_and_shorter_waits_are_known_without_an_interval() -> None:
    fewer = Effect(0.9, 0.8, 0.95, -3.0, -3.0, -3.0, 30_000.0)

    sentence = fewer.sentence(9)
    assert (
        "9 recorded operations, 3 fewer would have completed. All together would have waited 30.0 ms less."
        in sentence
    )


def test_a_change_of_less_than_half_an_operation_is_no_change() -> None:
    none = replace(EFFECT, more_completed=-0.4, more_completed_low=-0.4, more_completed_high=-0.4)

    assert "Of 9 recorded operations, as many would have completed." in none.sentence(9)


def test_a_single_operation_is_in_the_singular() -> None:
    assert "Of 1 recorded operation, 1,203 more" in EFFECT.sentence(1)


def test_an_effect_that_is_not_known_is_not_said() -> None:
    unknown = replace(EFFECT, more_completed=None, waited_less_us=None)

    assert unknown.sentence(9) == "99.9 % would complete (99.8 % to 99.95 %)."


def test_an_unidentifiable_timeout_is_printed_as_longer_than_the_longest_wait() -> None:
    assert P99.timeout == "40.0 ms"
    assert replace(P99, timeout_us=None).timeout == "> 2.00 s"
