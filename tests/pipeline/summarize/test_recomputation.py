"""The summaries of a journal that has everything, computed again by DuckDB from the journal's own files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from pyspark.sql import SparkSession

from benchmarks.suites.pipeline import check, summarize
from purgatory.journal.schema import CHECKS, GAPS
from purgatory.pipeline.command import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import compact
from purgatory.pipeline.jobs import summarize as summarize_job
from purgatory.pipeline.tables import GAP_MINUTES
from tests.pipeline.journals import NOON, ROWS, Row, add_segment, operation

# What the page on the journal says about valid rows, in SQL of its own.
CLEAN: Final = """
SET TimeZone = 'UTC';
COPY (
    SELECT * EXCLUDE (filename, file_row_number)
    FROM read_parquet('{journal}/operations/*.parquet', filename = true, file_row_number = true)
    WHERE node IS NOT NULL AND kind != '' AND outcome IN ('completed', 'expired', 'cancelled', 'failed')
        AND tries >= 1 AND waited_us >= 0 AND coalesce(timeout_us, 0) >= 0
        AND len(list_filter(keys, lambda key: key IS NULL)) = 0
        AND (lateness_us IS NULL OR (
            lateness_us BETWEEN 0 AND waited_us AND outcome = 'expired' AND timeout_us IS NOT NULL))
    QUALIFY row_number() OVER (
        PARTITION BY node, purgatory, operation_id ORDER BY filename, file_row_number) = 1
) TO '{clean}/operations.parquet';
COPY (
    SELECT * FROM read_parquet('{journal}/checks/*.parquet') WHERE completed BETWEEN 0 AND tried
) TO '{clean}/checks.parquet';
"""
INCOMPLETE: Final = """
SELECT DISTINCT unnest(generate_series(date_trunc('minute', began), ended, INTERVAL 1 MINUTE)) AS minute
FROM read_parquet('{journal}/gaps/*.parquet') ORDER BY ALL
"""

# One of each kind of malformed row.
DEFECTS: Final[tuple[Row, ...]] = (
    {"node": None},
    {"kind": None},
    {"kind": ""},
    {"outcome": "pending"},
    {"tries": 0},
    {"waited_us": -1},
    {"timeout_us": -5},
    {"keys": ["k", None]},
    {"lateness_us": -1},
    {"outcome": "completed", "lateness_us": 5},
    {"outcome": "expired", "timeout_us": None, "lateness_us": 5},
    {"outcome": "expired", "waited_us": 4, "lateness_us": 5},
)


def operations(draw: random.Random) -> Iterator[Row]:
    """Operations of two nodes and three kinds in a quarter of an hour, with any outcome."""
    for number in range(3_000):
        timeout = draw.choice((None, 50_000, 2_000_000, 90_000_000))
        wait = int(draw.lognormvariate(13, 2))
        outcome, lateness = draw.choice(("completed", "cancelled", "failed")), None
        if timeout is not None and wait > timeout:
            outcome, lateness = "expired", draw.randrange(3_000)
            wait = timeout + lateness
        yield operation(
            number // 2,
            node=f"node-{number % 2}",
            purgatory=draw.choice(("fetch", "produce")),
            kind=draw.choice(("Fetch", "Produce", "a/b=c")),
            keys=[f"key-{int(draw.paretovariate(1)) % 50}" for _ in range(draw.randrange(3))],
            started=NOON + timedelta(microseconds=draw.randrange(900_000_000)),
            timeout_us=timeout,
            waited_us=wait,
            lateness_us=lateness,
            outcome=outcome,
            tries=draw.randint(1, 9),
        )


@dataclass(frozen=True)
class Recomputed:
    """The tables of both, and the minutes for which the journal is incomplete."""

    dataset: Dataset
    tables: Path
    incomplete: list[datetime]
    compacted: str


@pytest.fixture(scope="module")
def recomputed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Recomputed:
    root, draw = tmp_path_factory.mktemp("recomputed"), random.Random(0)
    journal, clean = root / "journal", root / "clean"
    rows = list(operations(draw))
    malformed = [operation(10**6 + number, **defect) for number, defect in enumerate(DEFECTS * 3)]
    # The second segment has rows of the first again, and the third one says other things about some of them.
    add_segment(journal, "1", rows[:2_000] + malformed[:10])
    add_segment(journal, "2", malformed[10:] + rows[1_500:])
    add_segment(journal, "3", [row | {"tries": 99} for row in draw.sample(rows, 200)])
    check_rows = [
        ROWS[CHECKS]
        | {"checked": NOON + timedelta(seconds=draw.randrange(900)), "tried": tried}
        | {"completed": draw.randint(-1, tried + 1), "purgatory": draw.choice(("fetch", "produce"))}
        for tried in (int(draw.paretovariate(0.5)) % 10_000 for _ in range(2_000))
    ]
    add_segment(journal, "1", check_rows, table=CHECKS)
    gaps: list[dict[str, Any]] = [
        ROWS[GAPS] | {"began": NOON + timedelta(seconds=began), "ended": NOON + timedelta(seconds=ended)}
        for began, ended in ((59, 61), (100, 130), (110, 111), (240, 240))
    ]
    add_segment(journal, "1", gaps, table=GAPS)

    dataset = Dataset(f"{root}/dataset")
    with redirect_stdout(StringIO()) as printed:
        compact.run(spark, parser().parse_args(["compact", str(journal), dataset.root]))
        summarize_job.run(spark, parser().parse_args(["summarize", dataset.root]))
    clean.mkdir()
    with duckdb.connect() as connection:
        connection.execute(CLEAN.format(journal=journal, clean=clean))
        incomplete = connection.execute(INCOMPLETE.format(journal=journal)).fetchall()
    summarize(
        [f"{clean}/operations.parquet"],
        [f"{clean}/checks.parquet"],
        f"{root}/tables",
        str(root),
        "500m",
    )
    return Recomputed(dataset, root / "tables", [minute for (minute,) in incomplete], printed.getvalue())


def test_the_summaries_are_those_of_another_engine_on_the_journal_itself(recomputed: Recomputed) -> None:
    check(Path(recomputed.dataset.root, "summary"), recomputed.tables)


def test_each_recorded_row_is_accounted_for(recomputed: Recomputed) -> None:
    assert recomputed.compacted.startswith(
        "operations: 3 new files, 3736 rows = 3000 kept + 700 duplicates + 36 quarantined\n"
    )


def test_the_incomplete_minutes_are_those_of_the_gaps(spark: SparkSession, recomputed: Recomputed) -> None:
    found = recomputed.dataset.read_derived(spark, GAP_MINUTES).orderBy("minute").collect()
    assert [row["minute"].timestamp() for row in found] == [
        each.timestamp() for each in recomputed.incomplete
    ]
    assert [each.minute for each in recomputed.incomplete] == [0, 1, 2, 4]
