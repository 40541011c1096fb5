"""The table of what timeouts would have done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.findings import EFFECTS, VERDICTS, Findings, Row, series
from purgatory.pipeline.text import duration, less, more, percent


def effects(of: str, findings: Findings, strata: Iterable[Row]) -> str:
    """A table with one row for each timeout of these strata, the short ones first."""
    by_stratum: dict[tuple[Any, ...], list[Row]] = {}
    for row in findings[EFFECTS]:
        by_stratum.setdefault(_stratum(row), []).append(row)
    notes = {
        (*_stratum(row), row[name]): note
        for name, note in (("present_us", "the present timeout"), ("timeout_us", "the verdict"))
        for row in findings[VERDICTS]
    }
    return markup.table(
        f"{of}: what each timeout would have done, if all operations had had it. Small: 95 % intervals.",
        [
            markup.Column("of", series, _key, number=False),
            markup.Column(
                "timeout",
                lambda row: duration(row["timeout_us"]),
                lambda row: notes.get((*_stratum(row), row["timeout_us"]), ""),
            ),
            markup.Column("within it", lambda row: percent(row["completes"]), _interval),
            markup.Column("complete", _more_completed, _more_interval),
            markup.Column("all wait", _waited_less),
        ],
        [row for stratum in strata for row in by_stratum.get(_stratum(stratum), ())],
    )


def _key(row: Row) -> str:
    return "" if row["key"] is None else f"on {row['key']}"


def _interval(row: Row) -> str:
    return f"{percent(row['completes_low'])} to {percent(row['completes_high'])}"


def _more_completed(row: Row) -> str:
    return "not known" if row["more_completed"] is None else more(row["more_completed"])


def _more_interval(row: Row) -> str:
    low, high = row["more_completed_low"], row["more_completed_high"]
    return "" if low is None or round(low) == round(high) else f"{low:+,.0f} to {high:+,.0f}"


def _waited_less(row: Row) -> str:
    return "not known" if row["waited_less_us"] is None else less(row["waited_less_us"])


def _stratum(row: Row) -> tuple[Any, ...]:
    return row["purgatory"], row["kind"], row["key"]
