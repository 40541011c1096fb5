"""The rules that decide on a timeout, and the sentences that give the reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest

from purgatory.pipeline.advise.evidence import Effect, Evidence, Mixture, Reading
from purgatory.pipeline.advise.verdict import (
    KEEP,
    LENGTHEN,
    SHORTEN,
    UNKNOWN,
    Verdict,
    alike,
    compared,
    decide,
)

SECOND = 1_000_000
P99 = Reading(
    purgatory="produce",
    kind="Produce",
    key=None,
    operations=10_000,
    waited_in_all_us=1_000 * SECOND,
    followed_us=2 * SECOND,
    known_share=0.999,
    settled_us=80_000,
    share=0.99,
    timeout_us=40_000,
    timeout_low_us=38_000,
    timeout_high_us=42_000,
    naive_us=40_000,
)


def effect(
    completes: float, low: float, high: float, *, more: float | None = 0.0, less: float | None = 0.0
) -> Effect:
    return Effect(completes, low, high, more, more, more, less)


def evidence(
    p99: Reading = P99,
    present: int | None = 2 * SECOND,
    now: tuple[float, float, float] = (0.999, 0.998, 0.9995),
    mixture: Mixture | None = None,
    then: Effect | None = None,
) -> Evidence:
    """A present timeout, what completes within it, and the effect of any other timeout."""
    mixture = mixture or [(present, p99.operations)]
    bare = Evidence(p99, mixture, {})
    until = p99.followed_us if bare.present_us is None else bare.present_us
    others = dict.fromkeys(bare.candidates, then or effect(0.995, 0.991, 0.999))
    return Evidence(p99, mixture, others | {until: effect(*now)})


SAVES_MUCH = effect(0.9985, 0.998, 0.999, more=-3.0, less=200.0 * SECOND)
SAVES_LITTLE = effect(0.9985, 0.998, 0.999, more=-3.0, less=99.0 * SECOND)


def test_a_timeout_far_above_what_operations_need_is_shortened_to_twice_that() -> None:
    verdict = decide(evidence(then=SAVES_MUCH))

    assert (verdict.verdict, verdict.timeout_us) == (SHORTEN, 160_000)
    assert verdict.advice == "shorten from 2.00 s to 160 ms"
    assert verdict.reason == (
        "99.9 % complete within 2.00 s (99.8 % to 99.95 %), which is 50 times p99, 40.0 ms. Of these, at "
        "most one in a thousand takes longer than 80.0 ms. With 160 ms, 99.85 % would complete (99.8 % to "
        "99.9 %). Of 10,000 recorded operations, 3 fewer would have completed. All together would have "
        "waited 3 min 20 s less."
    )


def test_a_timeout_is_kept_if_a_shorter_one_saves_less_than_a_tenth_of_the_time_waited() -> None:
    verdict = decide(evidence(then=SAVES_LITTLE))

    assert (verdict.verdict, verdict.timeout_us, verdict.advice) == (KEEP, None, "keep 2.00 s")
    assert verdict.reason.endswith("A shorter timeout would save less than 10 % of the time waited.")


@pytest.mark.parametrize(("present", "expected"), [(320_000, SHORTEN), (319_999, KEEP)])
def test_a_timeout_is_shortened_to_half_of_it_or_less(present: int, expected: str) -> None:
    verdict = decide(evidence(present=present, then=SAVES_MUCH))

    assert verdict.verdict == expected
    if expected == KEEP:
        assert "some operations need 80.0 ms" in verdict.reason


def test_a_timeout_is_kept_if_too_few_have_completed_to_shorten_it() -> None:
    verdict = decide(evidence(replace(P99, settled_us=None), then=SAVES_MUCH))

    assert verdict.verdict == KEEP
    assert verdict.reason.endswith(
        "Too few operations have completed to tell whether a shorter timeout is enough."
    )


def test_operations_that_wait_in_vain_are_no_reason_to_lengthen() -> None:
    # A fifth expires, but nothing completes in the second half of the timeout.
    vain, known = (0.8, 0.79, 0.81), replace(P99, timeout_us=None, timeout_low_us=None, timeout_high_us=None)
    verdict = decide(evidence(known, now=vain, then=SAVES_LITTLE))
    shorter = decide(evidence(known, now=vain, then=SAVES_MUCH))

    assert verdict.verdict == KEEP
    assert (
        "Operations that expire would not complete soon: the curve has settled by 80.0 ms." in verdict.reason
    )
    assert (shorter.verdict, shorter.timeout_us) == (SHORTEN, 160_000)


def test_a_timeout_is_lengthened_to_the_upper_bound_of_p99() -> None:
    more = Effect(0.992, 0.9901, 0.994, 812.0, 790.0, 831.0, -20.0 * SECOND)
    verdict = decide(evidence(present=30_000, now=(0.92, 0.91, 0.93), then=more))

    assert (verdict.verdict, verdict.timeout_us) == (LENGTHEN, 42_000)
    assert verdict.advice == "lengthen from 30.0 ms to 42.0 ms"
    assert verdict.reason == (
        "Only 92 % complete within 30.0 ms (91 % to 93 %), which is 0.75 times p99, 40.0 ms; 99 % should. "
        "With 42.0 ms, 99.2 % would complete (99.01 % to 99.4 %). Of 10,000 recorded operations, 812 more "
        "(+790 to +831) would have completed. All together would have waited 20.0 s more."
    )


def test_a_longer_timeout_with_which_fewer_would_have_completed_says_why() -> None:
    fewer = Effect(0.992, 0.9901, 0.994, -20.0, -30.0, -10.0, 20.0 * SECOND)
    verdict = decide(evidence(present=30_000, now=(0.92, 0.91, 0.93), then=fewer))

    assert verdict.verdict == LENGTHEN
    assert "20 fewer (-30 to -10) would have completed." in verdict.reason
    assert verdict.reason.endswith(
        "They are fewer because some operations completed after more than 42.0 ms: these had a longer "
        "timeout, or the event loop was late."
    )


def test_if_no_operation_completes_none_is_not_called_few() -> None:
    unknown = replace(P99, timeout_us=None, timeout_low_us=None, timeout_high_us=None, followed_us=30_900)
    verdict = decide(evidence(unknown, present=30_000, now=(0.0, 0.0, 0.975)))

    assert verdict.reason.startswith("0 % complete within 30.0 ms (0 % to 97.5 %); 99 % should.")


def test_a_timeout_far_above_p99_is_so_many_times_p99_in_digits() -> None:
    verdict = decide(evidence(present=138_000_000, then=SAVES_LITTLE))

    assert "which is 3,450 times p99, 40.0 ms" in verdict.reason


def test_the_present_timeout_may_cut_off_the_waits_that_would_tell() -> None:
    unknown = replace(P99, timeout_us=None, timeout_low_us=None, timeout_high_us=None, followed_us=30_900)
    verdict = decide(evidence(unknown, present=30_000, now=(0.92, 0.91, 0.93)))

    assert (verdict.verdict, verdict.timeout_us, verdict.advice) == (UNKNOWN, None, UNKNOWN)
    assert verdict.reason == (
        "Only 92 % complete within 30.0 ms (91 % to 93 %); 99 % should. The journal does not show how long "
        "the other operations would take: the longest wait is 30.9 ms. Give some operations, at random, a "
        "longer timeout, such as 60.0 ms."
    )


def test_an_open_interval_of_p99_does_not_tell_how_long_a_timeout_has_to_be() -> None:
    verdict = decide(evidence(replace(P99, timeout_high_us=None), present=30_000, now=(0.92, 0.91, 0.93)))

    assert verdict.verdict == UNKNOWN
    assert (
        "Too few operations waited for longer to be sure how long the other operations take" in verdict.reason
    )
    assert verdict.reason.endswith(
        "it may be 40.0 ms. Give some operations, at random, a longer timeout, such as 80.0 ms."
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.99, 0.999, KEEP), (0.9899, 0.99, UNKNOWN), (0.98, 0.9899, LENGTHEN)],
)
def test_the_interval_has_to_be_on_one_side_of_99_percent(low: float, high: float, expected: str) -> None:
    verdict = decide(evidence(present=41_000, now=(0.985, low, high)))

    assert verdict.verdict == expected
    if expected == UNKNOWN:
        assert (
            "that may be 99 %, or less; there are too few operations (10,000), or too many" in verdict.reason
        )


def test_operations_that_never_expire_need_no_longer_timeout() -> None:
    kept = decide(evidence(present=None, now=(0.5, 0.4, 0.6)))
    shorter = decide(evidence(present=None, now=(0.5, 0.4, 0.6), then=SAVES_MUCH))

    assert (kept.verdict, kept.advice, kept.present_us, kept.times_p99) == (
        KEEP,
        "keep it without a timeout",
        None,
        None,
    )
    assert "50 % complete within 2.00 s, the longest wait" in kept.reason
    assert shorter.advice == "set a timeout of 160 ms"


def test_operations_that_do_not_wait_have_no_verdict() -> None:
    verdict = decide(evidence(present=0, now=(0.5, 0.4, 0.6)))

    assert verdict.verdict == UNKNOWN
    assert "do not wait" in verdict.reason


def test_without_a_usual_timeout_there_is_no_verdict() -> None:
    verdict = decide(evidence(mixture=[(3_000, 900), (2_000, 900), (None, 100)]))

    assert verdict.verdict == UNKNOWN
    assert "only 9 % of the operations have the most frequent timeout, 3.00 ms" in verdict.reason


def test_of_several_timeouts_the_most_frequent_one_is_judged_and_all_are_named() -> None:
    verdict = decide(evidence(mixture=[(0, 6_000), (30_000, 3_000), (None, 500)], now=(0.92, 0.91, 0.93)))

    assert (verdict.present_us, verdict.with_present) == (30_000, 0.3)
    assert verdict.present == "0 µs (60 %), 30.0 ms (30 %), no timeout (5 %), others (5 %)"


def test_timeouts_that_are_all_named_leave_no_others() -> None:
    assert (
        decide(evidence(mixture=[(30_000, 7_500), (None, 2_500)])).present
        == "30.0 ms (75 %), no timeout (25 %)"
    )


def verdict(key: str | None, **changed: object) -> Verdict:
    return replace(decide(evidence(replace(P99, key=key))), **changed)  # type: ignore[arg-type]  # what a test names


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"present_us": 1}, False),
        # With many operations any difference is certain, but it need not matter.
        ({"completes_low": 0.9996}, True),
        ({"verdict": LENGTHEN, "timeout_us": 2}, False),
        ({"verdict": UNKNOWN}, True),
        ({"verdict": UNKNOWN, "completes_high": 0.9979}, False),
        ({"verdict": UNKNOWN, "completes_low": 0.9996}, False),
    ],
    ids=str,
)
def test_a_key_with_the_timeout_and_the_verdict_of_its_kind_behaves_as_the_kind(
    changed: dict[str, object], expected: bool
) -> None:
    kind, key = compared([verdict(None), verdict("k", **changed)])

    assert (kind.as_kind, key.as_kind) == (False, expected)


@pytest.mark.parametrize(("timeout", "expected"), [(49, False), (50, True), (200, True), (201, False)])
def test_a_timeout_may_be_half_or_twice_that_of_the_kind(timeout: int, expected: bool) -> None:
    kind = verdict(None, verdict=LENGTHEN, timeout_us=100)
    _, key = compared([kind, replace(kind, key="k", timeout_us=timeout)])

    assert key.as_kind is expected


def test_keys_that_behave_alike_are_said_in_one_sentence() -> None:
    found = compared([verdict(None), verdict("a"), verdict("b"), verdict("c", present_us=1)])

    assert list(alike(found)) == ["2 keys behave as their kind does: a, b."]
    assert list(alike(found[:2])) == ["1 key behaves as its kind does: a."]
    assert list(alike(found[:1])) == []


def test_a_key_is_compared_with_its_own_kind() -> None:
    other = verdict(None, kind="Other", present_us=1)
    found = compared([other, verdict(None), verdict("k"), replace(other, key="k")])

    assert [each.as_kind for each in found] == [False, False, True, True]
    assert [each.stratum for each in found[2:]] == ["Produce in produce on k", "Other in produce on k"]
