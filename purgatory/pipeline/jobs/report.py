"""The command `report`: a page of charts and tables."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline import locations
from purgatory.pipeline import tables as derived
from purgatory.pipeline.arguments import add_dataset, check_apart, output
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.report.downsampling import (
    downsampled,
    fan_out_in_steps,
    gaps_in_steps,
    minutes_in_steps,
    minutes_per_step,
    pending_in_steps,
)
from purgatory.pipeline.report.findings import (
    COMMITS,
    CURVES,
    FAN_OUT,
    GAPS,
    KINDS,
    KINDS_SCHEMA,
    MINUTES,
    NODES,
    PENDING,
    Findings,
    Row,
    kinds,
)
from purgatory.pipeline.schemas import ROW_COUNTS
from purgatory.pipeline.sizing import fit
from purgatory.pipeline.summarize.coverage import Coverage
from purgatory.pipeline.transforms.instants import MINUTE_US

NAME: Final = "report"
SUMMARY: Final = "Make an HTML page with charts and tables of what the other commands computed."
EXAMPLES: Final = """\
  %(prog)s build/dataset build/report
      then open build/report/index.html
"""

# The order of the rows of each table. It is the order in the dataset, but steps of time replace the minutes.
_ORDERS: Final = {
    **{
        table.name: tuple("since" if name == "minute" else name for name in table.order_by)
        for table in derived.SUMMARY_TABLES
    },
    CURVES: ("purgatory", "kind", "waited_us"),
    COMMITS: ("table",),
    NODES: ("node",),
}


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "output",
        type=output,
        metavar="PAGE",
        help="the folder for index.html and its tables",
    )


def check(options: Namespace) -> None:
    dataset: Dataset = options.dataset
    check_apart(dataset, page=options.output)
    dataset.check_compacted()


def run(spark: SparkSession, options: Namespace) -> None:
    # The page is imported here, because Altair takes a second, and the other commands do not need it.
    from purgatory.pipeline.report.page import page

    dataset: Dataset = options.dataset
    fit(spark, dataset.size)
    frames = {COMMITS: _commits(spark, dataset), NODES: _nodes(spark, dataset)}
    frames |= _in_steps(dataset.read_run(spark, derived.SUMMARY_TABLES))
    advice, replay = map(dataset.logs_of_run, (derived.ADVICE_TABLES, derived.REPLAY_TABLES))
    if advice:
        curves = dataset.derived(derived.CURVES).read(spark, log=advice.pop(derived.CURVES))
        frames[CURVES] = downsampled(curves.where("key IS NULL"))
    tables = {
        name: frame.coalesce(1).sortWithinPartitions(*_ORDERS[name]).toArrow()
        for name, frame in frames.items()
    }
    # These tables are small, and their rows are in order.
    tables |= {table.name: dataset.derived(table).rows(log) for table, log in (advice | replay).items()}
    rows: dict[str, Sequence[Row]] = {name: table.to_pylist() for name, table in tables.items()}
    if MINUTES in tables:
        rows[KINDS] = kinds(rows[MINUTES], rows[PENDING])
        tables[KINDS] = pa.Table.from_pylist(rows[KINDS], KINDS_SCHEMA)
    html = page(Findings(dataset.root, datetime.now(UTC), rows), sorted(tables))

    for name, table in tables.items():
        with locations.created(f"{options.output}/tables/{name}.parquet") as file:
            pq.write_table(table, file)
        with locations.created(f"{options.output}/tables/{name}.json", "application/json") as file:
            file.write(_json(rows[name]).encode())
    with locations.created(f"{options.output}/index.html", "text/html; charset=utf-8") as file:
        file.write(html.encode())
    print(f"The report is in {options.output}/index.html")


def _commits(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The numbers of files and of rows of each table: kept, duplicates, quarantined."""
    return (
        dataset.read_segments(spark)
        .groupBy("table")
        .agg(
            F.count("*").alias("files"),
            F.count("reason").alias("unreadable_files"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ROW_COUNTS),
        )
    )


def _nodes(spark: SparkSession, dataset: Dataset) -> DataFrame:
    """The nodes, and the rows that each node has lost. Reads only the column ``node`` of the operations."""
    lost = (
        dataset.read_gaps(spark)
        .groupBy("node")
        .agg(
            F.count("*").alias("gaps"),
            F.sum("lost_operations").alias("lost_operations"),
            F.sum("lost_checks").alias("lost_checks"),
        )
    )
    return dataset.read_operations(spark, ["node"]).distinct().join(lost, "node", "full").fillna(0)


def _in_steps(summary: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The summary by steps of time; empty if there is no summary."""
    if not summary:
        return {}
    minutes, pending, fan_out = (summary[name] for name in (MINUTES, PENDING, FAN_OUT))
    covered = reduce(DataFrame.union, (each.select("since", "until") for each in (minutes, pending, fan_out)))
    ((since_us, until_us),) = covered.agg(
        F.min(F.unix_micros("since")), F.max(F.unix_micros("until"))
    ).collect()
    coverage = Coverage(since_us or 0, until_us or 0)
    between = (coverage.until_us - 1) // MINUTE_US - coverage.since_us // MINUTE_US
    step = minutes_per_step(1 + between)
    return summary | {
        MINUTES: minutes_in_steps(minutes, step, coverage),
        PENDING: pending_in_steps(pending, step, coverage),
        FAN_OUT: fan_out_in_steps(fan_out, step, coverage),
        GAPS: gaps_in_steps(summary[GAPS], step),
    }


def _json(rows: Sequence[Row]) -> str:
    """A JSON array with one row in each line."""
    lines = (json.dumps(row, default=datetime.isoformat, ensure_ascii=False, allow_nan=False) for row in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"
