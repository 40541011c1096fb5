"""Sample findings: two kinds in two purgatories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from purgatory.pipeline.advise.verdict import KEEP, LENGTHEN, Verdict
from purgatory.pipeline.report.findings import (
    COMMITS,
    CURVES,
    EFFECTS,
    FAN_OUT,
    GAPS,
    HOTTEST_KEYS,
    KINDS,
    MINUTES,
    NODES,
    PENDING,
    TIMEOUTS,
    VERDICTS,
    Findings,
    kinds,
)

Row = dict[str, Any]

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
# A name that must not become part of the page's HTML.
HOSTILE: Final = "</script><script>alert(1)</script>"

FETCH: Final = {"purgatory": "fetch", "kind": "Fetch"}
PRODUCE: Final = {"purgatory": "produce", "kind": "Produce"}


def step(number: int, minutes: int = 1) -> Row:
    """The n-th step since noon."""
    since = NOON + number * minutes * MINUTE
    return {"since": since, "until": since + minutes * MINUTE}


def minute(number: int, kind: Row = FETCH, **changed: Any) -> Row:
    ended = {"operations": 4, "completed": 2, "expired": 1, "cancelled": 1, "failed": 0}
    waits = {"wait_p50_us": 0.0, "wait_p90_us": 900.0, "wait_p99_us": 2_000.0, "wait_p999_us": 3_000.0}
    return {
        **(step(number) | kind | ended | waits),
        **({"lateness_p99_us": 150.0, "tries_per_operation": 1.5} | changed),
    }


def pending(number: int, kind: Row = FETCH, most: int = 3) -> Row:
    return step(number) | kind | {"pending_max": most, "pending_mean": most / 2}


def checks(number: int, purgatory: str = "fetch", tried_max: int = 9) -> Row:
    counts = {"checks": 10, "tried": 30, "completed": 5}
    return (
        step(number)
        | {"purgatory": purgatory, **counts, "tried_p50": 2.0, "tried_p99": 8.0}
        | {"tried_max": tried_max}
    )


def curve(
    kind: Row = FETCH, key: str | None = None, *, unit_us: int = 1_000, reaches_zero: bool = False
) -> list[Row]:
    """A curve of ten operations: four complete, two are censored, and the rest complete or not at the end."""
    rows = []
    for waited, at_risk, completed, ended, running, survival in (
        (0, 10, 1, 1, 1, 0.9),
        (1, 9, 0, 2, 1, 0.9),
        (2, 7, 3, 3, 4, 0.9 * 4 / 7),
        (4, 4, 4, 4, 8, 0.0) if reaches_zero else (4, 4, 0, 4, 4, 0.9 * 4 / 7),
    ):
        bounds = (None, None) if survival == 0 else (survival / 2, min(1.0, survival * 1.1))
        row = {"waited_us": waited * unit_us, "at_risk": at_risk, "ended": ended, "completed": completed}
        rows.append(
            kind
            | {"key": key, **row, "completed_running": running, "survival": survival}
            | {"survival_low": bounds[0], "survival_high": bounds[1]}
        )
    return rows


def timeouts(kind: Row = FETCH, key: str | None = None, operations: int = 8) -> list[Row]:
    """Timeouts for three shares: 50 % is known, 90 % has an open interval, 99 % is unknown."""
    whole = {"operations": operations, "waited_in_all_us": 9_000, "followed_us": 4_000, "known_share": 0.9}
    rows = []
    for share, timeout, low, high, naive in (
        (0.5, 1_000, 900, 1_100, 800),
        (0.9, 3_000, 2_500, None, 2_000),
        (0.99, None, None, None, None),
    ):
        of_share = {"share": share, "timeout_us": timeout, "timeout_low_us": low, "timeout_high_us": high}
        rows.append(kind | {"key": key, **whole, "settled_us": None, **of_share, "naive_us": naive})
    return rows


def effects(kind: Row = FETCH, key: str | None = None) -> list[Row]:
    """The effects of the present timeout, of a longer one, and of one that is too long to tell."""
    rows = []
    for timeout, completes, more, low, high in (
        (1_000, 0.5, -3.0, -3.0, -3.0),
        (2_000, 0.75, 1.0, 0.4, 1.6),
        (5_000, 0.9, None, None, None),
    ):
        share = {"completes": completes, "completes_low": completes - 0.1, "completes_high": completes + 0.1}
        changes = {"more_completed": more, "more_completed_low": low, "more_completed_high": high}
        rows.append(
            kind | {"key": key, "timeout_us": timeout, **share, **changes, "waited_less_us": more and 5_000.0}
        )
    return rows


def verdict(kind: Row = FETCH, key: str | None = None, operations: int = 8, **changed: Any) -> Row:
    """To lengthen from 1 ms to 2 ms."""
    row = Verdict(
        **kind,
        key=key,
        operations=operations,
        verdict=LENGTHEN,
        present_us=1_000,
        with_present=0.9,
        present="1.00 ms (90 %), 2.00 ms (10 %)",
        completes=0.5,
        completes_low=0.4,
        completes_high=0.6,
        p99_us=None,
        p99_low_us=1_500,
        p99_high_us=None,
        times_p99=None,
        timeout_us=2_000,
        advice="lengthen from 1.00 ms to 2.00 ms",
        reason=f"Only half of {operations} complete.",
    )
    return asdict(row) | changed


def hot_keys() -> list[Row]:
    figures = {"operations": 5, "waited_us": 9_000, "wasted_tries": 4}
    keys = (("operations", 1, HOSTILE), ("operations", 2, "b"), ("waited_us", 1, "b"))
    return [
        {"purgatory": "fetch", "by": by, "rank": rank, "key": key} | figures | {"operations": 9 - rank}
        for by, rank, key in keys
    ]


def settings(purgatory: str = "fetch", *, wakeups: int = 90, late: float | None = 990.0) -> list[Row]:
    """The default, one that is better in one way, and one that is worse than the default."""
    whole = {"purgatory": purgatory, "since": NOON, "until": NOON + 3 * MINUTE, "operations": 8}
    return [
        whole
        | {"tick_us": tick, "wheel_size": size, "wakeups": wakes, "moves": moves, "fullest_slot": 2}
        | {"levels": 2, "expired": 0 if late is None else 2, "pareto": pareto}
        | {"lateness_mean_us": late and late / 2, "lateness_p99_us": late and late * tick / 1_000}
        | {"lateness_max_us": late and tick}
        for tick, size, wakes, moves, pareto in (
            (1_000, 60, wakeups, 10, True),
            (1_000, 8, wakeups, 1_000, False),
            (5_000, 256, wakeups // 10, 0, True),
        )
    ]


def recommendation(purgatory: str = "fetch") -> Row:
    chosen = {"tick_us": 5_000, "wheel_size": 256, "acceptable_us": 10_000}
    whole = {"purgatory": purgatory, "operations": 8, "recorded": 12}
    return whole | chosen | {"sentence": f"Take five for {purgatory}."}


def commits(kept: int = 12, written: datetime = NOON + timedelta(hours=1)) -> list[Row]:
    counts = {"files": 2, "unreadable_files": 1, "rows": kept + 3, "duplicates": 2, "quarantined": 1}
    return [{"table": "operations", "written": written, "kept": kept, **counts}]


def nodes(*names: str, lost: int = 0) -> list[Row]:
    return [{"node": n, "gaps": min(lost, 1), "lost_operations": lost, "lost_checks": 0} for n in names]


def summary(*rows: Row, **changed: list[Row]) -> dict[str, Sequence[Row]]:
    """The tables that `summarize` leaves, with these minutes."""
    of_pending = [pending(0)] if rows else []
    whole: dict[str, Sequence[Row]] = {
        MINUTES: rows,
        PENDING: of_pending,
        FAN_OUT: [checks(0)] if rows else [],
        GAPS: [],
        HOTTEST_KEYS: hot_keys() if rows else [],
    }
    whole |= changed
    return whole | {KINDS: kinds(whole[MINUTES], whole[PENDING])}


def advice(*rows: Row, curves: Sequence[Row] = (), verdicts: Sequence[Row] = ()) -> dict[str, Sequence[Row]]:
    """The tables that `advise` leaves."""
    strata = list(dict.fromkeys((row["purgatory"], row["kind"], row["key"]) for row in rows))
    return {
        CURVES: curves,
        TIMEOUTS: rows,
        EFFECTS: [
            row
            for purgatory, kind, key in strata
            for row in effects({"purgatory": purgatory, "kind": kind}, key)
        ],
        VERDICTS: verdicts,
    }


def findings(**tables: Sequence[Row]) -> Findings:
    """Findings with these tables, and those that always exist."""
    always: dict[str, Sequence[Row]] = {COMMITS: commits(), NODES: nodes("a")}
    return Findings("build/data set", NOON, always | tables)


def everything() -> Findings:
    """Findings with every chart, a gap, and hostile names."""
    hostile = {"purgatory": "fetch", "kind": HOSTILE}
    minutes = [
        *(minute(number) for number in (0, 1, 3)),
        minute(0, PRODUCE, expired=0, completed=3, lateness_p99_us=None),
        minute(2, hostile),
    ]
    of_pending = [pending(0), pending(1), pending(0, PRODUCE), pending(2, hostile)]
    rows = [*timeouts(), *timeouts(key=HOSTILE), *timeouts(PRODUCE, operations=4)]
    incomplete = [step(1) | {"incomplete_minutes": 1}]
    return findings(
        **summary(
            *minutes,
            pending=of_pending,
            fan_out=[checks(0), checks(1, "produce"), checks(2)],
            gaps=incomplete,
        ),
        **advice(
            *rows,
            curves=[*curve(), *curve(PRODUCE, unit_us=200, reaches_zero=True)],
            verdicts=[
                verdict(),
                verdict(key=HOSTILE),
                verdict(PRODUCE, verdict=KEEP, timeout_us=None, operations=4),
            ],
        ),
        settings=settings(),
        recommendations=[recommendation()],
        nodes=nodes("a", HOSTILE, lost=7),
        commits=commits(20),
    )
