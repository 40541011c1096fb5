"""A journal of operations that never were, as large as one likes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import SparkSession

from purgatory.journal import schema
from purgatory.pipeline import files
from purgatory.pipeline.arguments import number, whole
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import GAPS
from purgatory.pipeline.transforms.synthesis import NUMBERS, Kind, Workload, checks, operations, spoiled

NAME: Final = "generate"
SUMMARY: Final = "Write a journal of made-up operations, of which the truth is known."
EXAMPLES: Final = """\
  %(prog)s build/made-up
      a million operations of two kinds
  %(prog)s build/made-up --operations 100_000_000 --keys 1_000_000 --hot 0.5
      many, half of which watch one key
  %(prog)s build/made-up --kind Fetch:0.2:1.0:0.5 --kind Patient:0.2:1.0:5
      the same waits under two timeouts
"""

# A segment is read as a whole, and one of a writer has 50,000 by default.
_ROWS_PER_FILE: Final = 250_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = Workload()
    share = number(0, 1)
    parser.add_argument("journal", metavar="JOURNAL", help="the directory to make: any path Spark knows")
    for name, convert, what in (
        ("operations", whole(0, NUMBERS), "how many"),
        ("seed", whole(0), "the same one makes the same operations, wherever it runs"),
        ("nodes", whole(1), "how many nodes they are on"),
        ("keys", whole(1), "how many keys there are"),
        (
            "zipf",
            number(0),
            "how unequal keys are: the k-th is wanted as often as k to the power of -N",
        ),
        ("hot", share, "share of the operations that watch the first key in any case"),
        ("withdrawn", share, "share that is cancelled before its timeout, if not completed by then"),
        ("malformed", share, "share that is recorded wrongly"),
        ("duration", number(1e-6), "seconds from the first start to the last"),
    ):
        parser.add_argument(
            f"--{name}",
            type=convert,
            default=getattr(default, name),
            metavar="N",
            help=f"{what} (default: %(default)s)",
        )
    parser.add_argument(
        "--start",
        type=_instant,
        default=default.start,
        metavar="TIME",
        help="when the first starts, in UTC unless it says otherwise (+02:00)",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        type=_kind,
        action="append",
        metavar="NAME:MEDIAN:SIGMA:TIMEOUT",
        help="may be repeated: completion takes a log-normal time of this median, in seconds, and sigma; "
        "the timeout, in seconds, may come before (default: "
        + ", ".join(f"{k.name}:{k.median}:{k.sigma}:{k.timeout}" for k in default.kinds)
        + ")",
    )


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    given = {field.name: getattr(options, field.name) for field in fields(Workload)}
    given["kinds"] = tuple(given["kinds"] or Workload().kinds)
    generate(spark, options.journal.rstrip("/"), Workload(**given))
    print(f"The journal is in {options.journal}, and the truth about it in {options.journal}/truth.json")


def generate(spark: SparkSession, journal: str, workload: Workload) -> None:
    """Write it; PipelineError where there is something already."""
    if files.exists(spark, journal):
        raise PipelineError(f"{journal}: exists already; name a directory that does not")
    parts = max(1, -(-workload.operations // _ROWS_PER_FILE))
    made = operations(spark.range(0, workload.operations, 1, parts), workload)
    spoiled(made, workload).write.parquet(f"{journal}/{schema.OPERATIONS}")
    checks(made).write.parquet(f"{journal}/{schema.CHECKS}")
    spark.createDataFrame([], GAPS).write.parquet(f"{journal}/{schema.GAPS}")
    truth = asdict(workload) | {"start": workload.start.isoformat()}
    files.write_text(spark, f"{journal}/truth.json", json.dumps(truth, indent=2) + "\n")


def _kind(text: str) -> Kind:
    name, *values = text.split(":")
    try:
        median, sigma, timeout = map(float, values)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME:MEDIAN:SIGMA:TIMEOUT, not {text!r}") from None
    if not (name and 0 < median < 1e6 and 0 <= sigma < 100 and 0 < timeout < 1e6):
        raise argparse.ArgumentTypeError(f"{text!r}: the median and the timeout must be positive seconds")
    return Kind(name, median, sigma, timeout)


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be like 2026-01-01T12:00, not {text!r}") from None
