"""Whether to keep, shorten or lengthen a timeout: the decision, and the sentences that give its reasons.

The first of these rules that applies decides. All bounds are bounds of 95 % confidence intervals.

1. Operations do not wait at all, or have no usual timeout: it *cannot be told*.
2. The curve has settled within a quarter of the timeout (`survival.timeouts` says when). With a timeout of
   twice the time in which the curve settles, all operations together would wait for at least a tenth less:
   *shorten* to that timeout.
3. There is no timeout; or at least 99 % complete within the timeout, also at the lower bound; or the curve
   has settled within half of the timeout, so that operations that expire would not complete soon: *keep*.
4. Fewer than 99 % complete within the timeout, also at the upper bound. If the timeout by which 99 % complete
   has an upper bound, *lengthen* to this bound. Otherwise it *cannot be told*: the present timeout cuts the
   waits off.
5. In all other cases it *cannot be told*: 99 % lies in the interval.

M. Brooker advises to choose a timeout by the share of operations that may expire without need, and to add a
margin (Timeouts, retries and backoff with jitter, Amazon Builders' Library).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from purgatory.pipeline.advise.evidence import HEADROOM, Evidence, named
from purgatory.pipeline.text import duration, percent

KEEP: Final = "keep"
SHORTEN: Final = "shorten"
LENGTHEN: Final = "lengthen"
UNKNOWN: Final = "cannot be told yet"

# The share that should complete within a timeout.
GOAL: Final = 0.99
# A timeout is usual if this share of the operations has it.
USUAL: Final = 0.1
# A shorter timeout is at most half of the present timeout, and saves at least this share of all waiting.
WORTHWHILE: Final = 0.1

# What the verdicts cannot know.
UNLESS: Final = (
    "If it is normal that operations of a kind expire, as it is for long polls, do not follow the verdict on "
    "this kind. Look at what each timeout would do."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the timeout of a kind, or of a kind on one key. A row of the table of verdicts.

    Timeouts are in microseconds. Shares are between 0 and 1.
    """

    purgatory: str
    kind: str
    # None for the whole kind.
    key: str | None
    operations: int
    verdict: str
    # The most frequent timeout, null if operations never expire; the share of operations that have it; and
    # all frequent timeouts, in words.
    present_us: int | None
    with_present: float
    present: str
    # The share that completes within the present timeout.
    completes: float
    completes_low: float
    completes_high: float
    p99_us: int | None
    p99_low_us: int | None
    p99_high_us: int | None
    # The present timeout divided by p99.
    times_p99: float | None
    # The timeout to change to. Its effect is in the table of effects.
    timeout_us: int | None
    # The verdict and its reason, in words.
    advice: str
    reason: str
    # Whether this is a key that behaves as its kind does.
    as_kind: bool = False

    @property
    def stratum(self) -> str:
        of_kind = f"{self.kind} in {self.purgatory}"
        return of_kind if self.key is None else f"{of_kind} on {self.key}"


def decide(evidence: Evidence) -> Verdict:
    """Apply the rules. Takes some microseconds."""
    verdict, timeout_us, reason = _decision(evidence)
    p99, now = evidence.p99, evidence.now
    if timeout_us is not None:
        effect = evidence.effects[timeout_us]
        reason = f"{reason} With {duration(timeout_us)}, {effect.sentence(p99.operations)}"
        if verdict == LENGTHEN and round(effect.more_completed or 0) < 0:
            reason = f"{reason} {_fewer(timeout_us)}"
    return Verdict(
        purgatory=p99.purgatory,
        kind=p99.kind,
        key=p99.key,
        operations=p99.operations,
        verdict=verdict,
        present_us=evidence.present_us,
        with_present=evidence.with_present,
        present=evidence.timeouts(),
        completes=now.completes,
        completes_low=now.completes_low,
        completes_high=now.completes_high,
        p99_us=p99.timeout_us,
        p99_low_us=p99.timeout_low_us,
        p99_high_us=p99.timeout_high_us,
        times_p99=evidence.times_p99,
        timeout_us=timeout_us,
        advice=_advice(verdict, evidence.present_us, timeout_us),
        reason=reason,
    )


def compared(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Mark the verdicts on keys that behave as their kind does.

    Such a key has the timeout of its kind and the same verdict. If both timeouts are to be changed, neither
    of the two new timeouts is more than twice the other. If the verdict on a key cannot be told, the key
    behaves as its kind does if the intervals of their shares that complete within the timeout overlap.
    """
    of_kinds = {(each.purgatory, each.kind): each for each in verdicts if each.key is None}
    return [
        each
        if each.key is None
        else replace(each, as_kind=_is_alike(each, of_kinds[each.purgatory, each.kind]))
        for each in verdicts
    ]


def alike(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Say in one sentence which keys behave as their kind does. Yields nothing if no key does.

    `verdicts` are the verdicts on one kind and its keys.
    """
    keys = [each.key for each in verdicts if each.as_kind and each.key is not None]
    if keys:
        behave = (
            "1 key behaves as its kind does"
            if len(keys) == 1
            else f"{len(keys)} keys behave as their kind does"
        )
        yield f"{behave}: {', '.join(keys)}."


def _decision(evidence: Evidence) -> tuple[str, int | None, str]:
    """The verdict, the timeout to change to, and the reason."""
    p99, now, settled, shorter = evidence.p99, evidence.now, evidence.p99.settled_us, evidence.shorter_us
    present = inf if evidence.present_us is None else evidence.present_us
    if present == 0:
        return UNKNOWN, None, "Its timeout is 0: operations are tried once, and do not wait."
    if evidence.with_present < USUAL:
        share = percent(evidence.with_present)
        return (
            UNKNOWN,
            None,
            f"It has no usual timeout: only {share} of the operations have the most frequent timeout, "
            f"{named(evidence.present_us)}.",
        )
    if settled is not None and shorter is not None:
        saved = evidence.effects[shorter].waited_less_us
        if saved is not None and saved >= WORTHWHILE * p99.waited_in_all_us:
            most = f"Of these, at most one in a thousand takes longer than {duration(settled)}."
            return SHORTEN, shorter, f"{evidence.within()}. {most}"
    if evidence.present_us is None:
        return KEEP, None, f"{evidence.within()}. No timeout cuts a wait off, and none would save much."
    if now.completes_low >= GOAL:
        return KEEP, None, f"{evidence.within()}. {_why_not_shorter(evidence)}"
    if settled is not None and 2 * settled <= present:
        others = (
            f"Operations that expire would not complete soon: the curve has settled by {duration(settled)}."
        )
        return KEEP, None, f"{evidence.within()}. {others} {_why_not_shorter(evidence)}"
    if now.completes_high >= GOAL:
        few = f"there are too few operations ({p99.operations:,}), or too many of them were withdrawn."
        return UNKNOWN, None, f"{evidence.within()}: that may be {percent(GOAL)}, or less; {few}"
    if evidence.longer_us is not None:
        return LENGTHEN, evidence.longer_us, _too_few(evidence)
    return UNKNOWN, None, _cut_off(evidence)


def _advice(verdict: str, present_us: int | None, timeout_us: int | None) -> str:
    if timeout_us is not None:
        longest = duration(timeout_us)
        if present_us is None:
            return f"set a timeout of {longest}"
        return f"{verdict} from {duration(present_us)} to {longest}"
    if verdict != KEEP:
        return verdict
    return "keep it without a timeout" if present_us is None else f"keep {duration(present_us)}"


def _fewer(timeout_us: int) -> str:
    """Why fewer operations would have completed with a timeout that is longer than the present timeout."""
    return (
        f"They are fewer because some operations completed after more than {duration(timeout_us)}: these "
        "had a longer timeout, or the event loop was late."
    )


def _why_not_shorter(evidence: Evidence) -> str:
    settled = evidence.p99.settled_us
    if settled is None:
        return "Too few operations have completed to tell whether a shorter timeout is enough."
    if evidence.shorter_us is None:
        return f"A much shorter timeout would be too short: some operations need {duration(settled)}."
    return f"A shorter timeout would save less than {percent(WORTHWHILE)} of the time waited."


def _cut_off(evidence: Evidence) -> str:
    p99, present = evidence.p99, evidence.present_us or 0
    if p99.timeout_us is None:
        unknown = (
            "The journal does not show how long the other operations would take: the longest wait is "
            f"{duration(p99.followed_us)}"
        )
    else:
        unknown = (
            "Too few operations waited for longer to be sure how long the other operations take; it may be "
            f"{duration(p99.timeout_us)}"
        )
    longer = duration(HEADROOM * max(present, p99.timeout_us or 0))
    return (
        f"{_too_few(evidence)} {unknown}. Give some operations, at random, a longer timeout, such as "
        f"{longer}."
    )


def _too_few(evidence: Evidence) -> str:
    only = "Only " if evidence.now.completes else ""
    return f"{only}{evidence.within()}; {percent(GOAL)} should."


def _is_alike(key: Verdict, kind: Verdict) -> bool:
    if key.present_us != kind.present_us:
        return False
    if key.verdict == UNKNOWN:
        return key.completes_low <= kind.completes_high and kind.completes_low <= key.completes_high
    if key.timeout_us is None or kind.timeout_us is None:
        return key.verdict == kind.verdict
    return key.verdict == kind.verdict and kind.timeout_us <= 2 * key.timeout_us <= 4 * kind.timeout_us
