"""The command `report`: a page of charts and tables."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal import schema
from purgatory.pipeline import locations
from purgatory.pipeline import tables as derived
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.exchange import Part, columns, gather, map_files
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
from purgatory.pipeline.separation import check_apart
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import MINUTE_US, select
from purgatory.pipeline.summarize.coverage import Coverage

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


# The numbers of files and of rows of each table (kept, duplicates, quarantined), and when its last file was
# written. Of each segment, the last reading counts.
_COMMITS: Final = f"""
SELECT "table", max(modified) AS written, count(*) AS files, count(reason) AS unreadable_files,
    {", ".join(f"coalesce(total({each}), 0) AS {each}" for each in ROW_COUNTS)}
FROM (FROM rows QUALIFY row_number() OVER (PARTITION BY "table", source ORDER BY batch DESC) = 1)
GROUP BY ALL
"""
_LOST: Final = """
SELECT node, count(*) AS gaps, total(lost_operations) AS lost_operations, total(lost_checks) AS lost_checks
FROM rows GROUP BY node
"""
_NODES: Final = """
SELECT node, coalesce(gaps, 0) AS gaps, coalesce(lost_operations, 0) AS lost_operations,
    coalesce(lost_checks, 0) AS lost_checks
FROM rows FULL JOIN lost USING (node)
"""


def check(options: Namespace) -> None:
    dataset = Dataset(options.dataset)
    check_apart(dataset, page=options.output)
    dataset.check_compacted()


def run(spark: Spark, options: Namespace) -> None:
    # The page is imported here, because Altair takes a second, and the other commands do not need it.
    from purgatory.pipeline.report.page import page

    dataset = Dataset(options.dataset)
    tables = {COMMITS: select(_COMMITS, dataset.segments.rows()), NODES: _nodes(spark, dataset)}
    summary, advice, replay = map(
        dataset.logs_of_run, (derived.SUMMARY_TABLES, derived.ADVICE_TABLES, derived.REPLAY_TABLES)
    )
    tables |= _in_steps({table.name: dataset.derived(table).rows(log) for table, log in summary.items()})
    if advice:
        curves = dataset.derived(derived.CURVES)
        paths = curves.paths(log=advice.pop(derived.CURVES))
        found = map_files(
            spark, paths, curves.columns, partial(select, "SELECT * FROM rows WHERE key IS NULL")
        )
        tables[CURVES] = downsampled(found)
    tables = {
        name: rows.sort_by([(each, "ascending") for each in _ORDERS[name]]) for name, rows in tables.items()
    }
    # The rows of these tables are in order.
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


def _nodes(spark: Spark, dataset: Dataset) -> pa.Table:
    """The nodes, and the rows that each node has lost. Reads only the column ``node`` of the operations."""
    distinct, lost = partial(select, "SELECT DISTINCT node FROM rows"), partial(select, _LOST)
    parts = (
        Part("nodes", schema.OPERATIONS, columns(schema.OPERATIONS, "node"), distinct, ("node",), distinct),
        Part("lost", schema.GAPS, schema.GAPS_SCHEMA, lambda gaps: gaps, ("node",), lost),
    )
    found = gather(spark, dataset.files(), parts)
    return select(_NODES, found["nodes"], lost=found["lost"])


def _in_steps(summary: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The summary by steps of time; empty if there is no summary."""
    if not summary:
        return {}
    minutes, pending, fan_out = (summary[name] for name in (MINUTES, PENDING, FAN_OUT))
    coverage = Coverage.of(
        *(
            select("SELECT epoch_us(since) AS first_us, epoch_us(until) AS last_us FROM rows", each)
            for each in (minutes, pending, fan_out)
        )
    )
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
