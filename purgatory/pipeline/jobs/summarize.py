"""The command `summarize`: measures of each minute, and the hottest keys."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.exchange import gather
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.summarize import fan_out, gaps, minutes
from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.summarize.hottest_keys import hottest_keys, ranked
from purgatory.pipeline.summarize.pending import CHANGES, pending
from purgatory.pipeline.tables import FAN_OUT, GAP_MINUTES, HOTTEST_KEYS, MINUTES, PENDING, SUMMARY_TABLES
from purgatory.pipeline.text import counted


def check(options: Namespace) -> None:
    Dataset(options.dataset).check_compacted()


def run(spark: Spark, options: Namespace) -> None:
    dataset = Dataset(options.dataset)
    this_run = dataset.new_run(SUMMARY_TABLES)
    parts = (
        CHANGES,
        minutes.MINUTES,
        hottest_keys(up_to=options.hottest),
        fan_out.FAN_OUT,
        gaps.GAP_MINUTES,
    )
    pass_over = gather(spark, dataset.files(), parts)
    changed, of_checks, gap_minutes = (pass_over[name] for name in ("changes", "fan_out", "gaps"))
    coverage = Coverage.of(changed, of_checks)
    by_minute = {
        MINUTES: pass_over["minutes"],
        PENDING: pending(changed, coverage),
        FAN_OUT: of_checks,
    }
    rows = {GAP_MINUTES: gap_minutes}
    rows |= {table: gaps.mark_gaps(coverage.mark(own), gap_minutes) for table, own in by_minute.items()}
    rows[HOTTEST_KEYS] = ranked(pass_over["hottest_keys"], up_to=options.hottest)
    for table, own in rows.items():
        dataset.replace(table, own, this_run)
        if table is not GAP_MINUTES:
            print(f"{dataset.derived(table).path}: {counted(own.num_rows, 'row')}")

    stored = dataset.derived(GAP_MINUTES)
    print(incompleteness(stored.rows()["minute"].to_pylist(), stored.path))


def incompleteness(minutes: Sequence[datetime], path: str) -> str:
    """Say which minutes are incomplete. `minutes` are in order; they are in the table at `path`."""
    if not minutes:
        return "All minutes are complete."
    first, last = (f"{minute:%Y-%m-%d %H:%M}" for minute in (minutes[0], minutes[-1]))
    return f"Incomplete minutes: {len(minutes):,}, from {first} to {last}, see {path}"
