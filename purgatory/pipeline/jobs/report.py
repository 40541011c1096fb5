"""The report: a page of charts and tables, for a browser."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline import files
from purgatory.pipeline.arguments import add_dataset
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.report import findings as found
from purgatory.pipeline.report.downsampling import thinned
from purgatory.pipeline.report.findings import Findings, Row, kinds
from purgatory.pipeline.report.page import page
from purgatory.pipeline.report.steps import (
    fan_out_in_steps,
    gaps_in_steps,
    minutes_in_steps,
    minutes_per_step,
    pending_in_steps,
)
from purgatory.pipeline.schemas import COMMITS

NAME: Final = "report"
SUMMARY: Final = "Make a page of charts and tables of what the other commands have found."
EXAMPLES: Final = """\
  %(prog)s build/dataset build/report
      then open build/report/index.html
"""

_MINUTE_US: Final = 60_000_000

# What a command leaves, all of it or nothing; see `tables.withdraw`.
_SUMMARY: Final = (found.MINUTES, found.PENDING, found.FAN_OUT, found.GAPS, found.HOTTEST_KEYS)
_ADVICE: Final = (found.CURVES, found.TIMEOUTS, found.SENTENCES)
_REPLAY: Final = (found.SETTINGS, found.RECOMMENDATIONS)

# In which order the rows of a table are shown. Null, which is a kind as a whole, comes first.
_ORDERS: Final = {
    found.COMMITS: ("table",),
    found.NODES: ("node",),
    found.MINUTES: ("since", "purgatory", "kind"),
    found.PENDING: ("since", "purgatory", "kind"),
    found.FAN_OUT: ("since", "purgatory"),
    found.GAPS: ("since",),
    found.HOTTEST_KEYS: ("purgatory", "by", "rank"),
    found.CURVES: ("purgatory", "kind", "waited_us"),
    found.TIMEOUTS: ("purgatory", "kind", "key", "share"),
    found.SENTENCES: ("purgatory", "kind", "key", "share"),
    found.SETTINGS: ("purgatory", "tick_us", "wheel_size"),
    found.RECOMMENDATIONS: ("purgatory",),
}


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "output",
        type=Path,
        metavar="DIRECTORY",
        help="the directory, on this machine, for index.html and the tables that it shows",
    )


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    frames = {found.COMMITS: _commits(spark, dataset), found.NODES: _nodes(spark, dataset)}
    frames |= _in_steps(_tables(spark, dataset.summary, _SUMMARY))
    frames |= _thinned(_tables(spark, dataset.advice, _ADVICE))
    frames |= _tables(spark, dataset.replay, _REPLAY)
    tables = {
        name: frame.coalesce(1).sortWithinPartitions(*_ORDERS[name]).toArrow()
        for name, frame in frames.items()
    }
    rows: dict[str, Sequence[Row]] = {name: table.to_pylist() for name, table in tables.items()}
    if found.MINUTES in tables:
        rows[found.KINDS] = kinds(rows[found.MINUTES], rows[found.PENDING])
        tables[found.KINDS] = pa.Table.from_pylist(rows[found.KINDS], found.KINDS_SCHEMA)
    whole = page(Findings(dataset.root, datetime.now(UTC), rows), sorted(tables))

    output: Path = options.output
    (output / "tables").mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, output / "tables" / f"{name}.parquet")
        (output / "tables" / f"{name}.json").write_text(_json(rows[name]), encoding="utf-8")
    (output / "index.html").write_text(whole, encoding="utf-8")
    print(f"The report is in {output / 'index.html'}")


def _tables(spark: SparkSession, path: Callable[[str], str], names: Sequence[str]) -> dict[str, DataFrame]:
    """These, or none of them where one is missing, as the last one is until its command has ended."""
    if not all(files.exists(spark, f"{path(name)}/*.parquet") for name in names):
        return {}
    return {name: spark.read.parquet(path(name)) for name in names}


def _commits(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """How many files and rows there were of each table, and what became of them."""
    counts = (F.sum(name).alias(name) for name in COMMITS.names if name not in ("table", "batch"))
    return dataset.read_commits(spark).groupBy("table").agg(*counts)


def _nodes(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """Who recorded, and how much they could not. Nothing else is asked of the operations themselves."""
    lost = (
        dataset.read_gaps(spark)
        .groupBy("node")
        .agg(
            F.count("*").alias("gaps"),
            F.sum("lost_operations").alias("lost_operations"),
            F.sum("lost_checks").alias("lost_checks"),
        )
    )
    return dataset.read_operations(spark).select("node").distinct().join(lost, "node", "full").fillna(0)


def _in_steps(summary: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The summary by steps of time, if there is one."""
    if not summary:
        return {}
    minutes, pending, fan_out = (summary[name] for name in (found.MINUTES, found.PENDING, found.FAN_OUT))
    instants = minutes.select("minute").union(pending.select("minute")).union(fan_out.select("minute"))
    first, last = (F.unix_micros(each("minute")) for each in (F.min, F.max))
    ((between,),) = instants.agg(((last - first) / _MINUTE_US).cast("long")).collect()
    step = minutes_per_step(1 + (between or 0))
    return summary | {
        found.MINUTES: minutes_in_steps(minutes, step),
        found.PENDING: pending_in_steps(pending, step),
        found.FAN_OUT: fan_out_in_steps(fan_out, step),
        found.GAPS: gaps_in_steps(summary[found.GAPS], step),
    }


def _thinned(advice: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The advice with as much of the curves as is drawn: those of the kinds, thinned."""
    if not advice:
        return {}
    return advice | {found.CURVES: thinned(advice[found.CURVES].where("key IS NULL"))}


def _json(rows: Sequence[Row]) -> str:
    """An array, with a row in each line."""
    lines = (json.dumps(row, default=datetime.isoformat, ensure_ascii=False, allow_nan=False) for row in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"
