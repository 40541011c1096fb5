"""What the commands find in a journal that has everything, computed again from the journal's own files.

DuckDB computes the summaries and the curves, and a model without a wheel the replay.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import duckdb
import numpy as np
import pytest

from benchmarks.suites.pipeline import check, summarize
from purgatory.journal.schema import CHECKS, GAPS
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import advise, compact, replay
from purgatory.pipeline.jobs import summarize as summarize_job
from purgatory.pipeline.replay.reaper import Setting, Wait
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import CURVES, GAP_MINUTES, SETTINGS
from tests.pipeline.journals import NOON, ROWS, Row, add_segment, operation
from tests.pipeline.replay.model import model

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
# The Kaplan-Meier estimate, and its interval by Greenwood's variance on the scale of log(-log(survival)).
KAPLAN_MEIER: Final = """
WITH watched AS (
    SELECT *, unnest(list_distinct(keys)) AS key FROM read_parquet('{clean}/operations.parquet')
),
hot AS (
    SELECT purgatory, key FROM watched GROUP BY purgatory, key
    QUALIFY row_number() OVER (PARTITION BY purgatory ORDER BY count(*) DESC, key) <= {hot_keys}
),
strata AS (
    SELECT purgatory, kind, NULL AS key, waited_us, outcome FROM read_parquet('{clean}/operations.parquet')
    UNION ALL
    SELECT purgatory, kind, key, waited_us, outcome FROM watched SEMI JOIN hot USING (purgatory, key)
),
ends AS (
    SELECT purgatory, kind, key, waited_us, count(*) AS ended,
        count(*) FILTER (outcome = 'completed') AS completed
    FROM strata GROUP BY ALL
),
counted AS (
    SELECT *, sum(ended) OVER (PARTITION BY purgatory, kind, key ORDER BY waited_us DESC) AS at_risk FROM ends
),
estimated AS (
    SELECT *, product(1 - completed / at_risk) OVER waits AS survival,
        sqrt(sum(completed / at_risk / nullif(at_risk - completed, 0)) OVER waits) AS error
    FROM counted WINDOW waits AS (PARTITION BY purgatory, kind, key ORDER BY waited_us)
)
SELECT purgatory, kind, key, waited_us, at_risk, ended, completed, survival,
    CASE WHEN survival = 1 THEN 1 WHEN survival > 0 THEN pow(survival, exp(-{z} * error / ln(survival))) END,
    CASE WHEN survival = 1 THEN 1 WHEN survival > 0 THEN pow(survival, exp({z} * error / ln(survival))) END
FROM estimated
"""
COUNTS: Final = ("purgatory", "kind", "key", "waited_us", "at_risk", "ended", "completed")
ESTIMATES: Final = ("survival", "survival_low", "survival_high")

# When an operation was added to its wheel, its deadline, and when it left before that, in microseconds.
WAITS: Final = """
SELECT node, purgatory, entered, entered + timeout_us, CASE WHEN NOT expired THEN ended END
FROM (
    SELECT *, epoch_us(started) AS entered, entered + waited_us AS ended, lateness_us IS NOT NULL AS expired
    FROM read_parquet('{clean}/operations.parquet')
)
WHERE timeout_us > 0 AND waited_us > 0
    AND NOT (outcome IN ('completed', 'failed') AND tries = 1 AND waited_us < 1000)
ORDER BY entered
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
    # The valid rows of the journal, each once, as DuckDB finds them.
    clean: Path
    tables: Path
    incomplete: list[datetime]
    compacted: str


@pytest.fixture(scope="module")
def recomputed(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Recomputed:
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
    return Recomputed(
        dataset, clean, root / "tables", [minute for (minute,) in incomplete], printed.getvalue()
    )


def test_the_summaries_are_those_of_another_engine_on_the_journal_itself(recomputed: Recomputed) -> None:
    check(Path(recomputed.dataset.root, "summary"), recomputed.tables)


def test_each_recorded_row_is_accounted_for(recomputed: Recomputed) -> None:
    assert recomputed.compacted.startswith(
        "operations: 3 new files, 3,736 rows = 3,000 kept + 700 duplicates + 36 quarantined\n"
    )


def test_the_incomplete_minutes_are_those_of_the_gaps(recomputed: Recomputed) -> None:
    found = recomputed.dataset.derived(GAP_MINUTES).rows().to_pylist()
    assert [row["minute"].timestamp() for row in found] == [
        each.timestamp() for each in recomputed.incomplete
    ]
    assert [each.minute for each in recomputed.incomplete] == [0, 1, 2, 4]


@pytest.mark.long
def test_the_curves_are_those_of_another_engine(spark: Spark, recomputed: Recomputed) -> None:
    hot_keys = 2
    advise.run(spark, parser().parse_args(["advise", recomputed.dataset.root, f"--hot-keys={hot_keys}"]))
    z = NormalDist().inv_cdf(0.975)
    with duckdb.connect() as connection:
        connection.execute(KAPLAN_MEIER.format(clean=recomputed.clean, hot_keys=hot_keys, z=z))
        right = connection.fetchall()
    curves = recomputed.dataset.derived(CURVES).rows().select([*COUNTS, *ESTIMATES])
    found = [tuple(row.values()) for row in curves.to_pylist()]
    assert len(found) == len(right) > 3_000
    for own, other in zip(sorted(found, key=place), sorted(right, key=place), strict=True):
        assert own[: len(COUNTS)] == other[: len(COUNTS)]
        assert own[len(COUNTS) :] == pytest.approx(other[len(COUNTS) :], abs=1e-9)


def place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The order of the points of curves. A kind, which has no key, comes before its keys."""
    purgatory, kind, key, waited_us, *_ = row
    return purgatory, kind, key or "", waited_us


@pytest.mark.long
def test_the_replayed_settings_are_those_of_a_model_without_a_wheel(
    spark: Spark, recomputed: Recomputed
) -> None:
    arguments = ["--operations=0", "--ticks", "0.001", "0.05", "--wheel-sizes", "8", "256"]
    replay.run(spark, parser().parse_args(["replay", recomputed.dataset.root, *arguments]))
    with duckdb.connect() as connection:
        rows = connection.execute(WAITS.format(clean=recomputed.clean)).fetchall()
    wheels: dict[tuple[str, str], list[Wait]] = {}
    for node, purgatory, entered, deadline, left in rows:
        wheels.setdefault((node, purgatory), []).append((entered, deadline, left))
    found = recomputed.dataset.derived(SETTINGS).rows().to_pylist()
    assert len(found) == 2 * 5
    for row in found:
        setting = Setting(row["tick_us"], row["wheel_size"])
        mine = [waits for (_, purgatory), waits in wheels.items() if purgatory == row["purgatory"]]
        works = [model(waits, setting) for waits in mine]
        lateness = sum((work.lateness for work in works), Counter[int]())
        assert row["operations"] == sum(map(len, mine))
        assert (row["wakeups"], row["moves"]) == (
            sum(work.wakeups for work in works),
            sum(work.moves for work in works),
        )
        assert row["fullest_slot"] == max(work.fullest_slot for work in works)
        assert row["levels"] == max(work.levels for work in works)
        assert (row["expired"], row["lateness_max_us"]) == (lateness.total(), max(lateness))
        late = sum(late * count for late, count in lateness.items())
        assert row["lateness_mean_us"] == pytest.approx(late / lateness.total())
        percentile = np.percentile(list(lateness.elements()), 99)
        assert row["lateness_p99_us"] == pytest.approx(percentile)
