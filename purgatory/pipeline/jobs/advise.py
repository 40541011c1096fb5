"""The command `advise`: computes the timeouts by which shares of the operations would complete."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.advice import Advice
from purgatory.pipeline.arguments import add_dataset, whole_number
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.tables import ADVICE_TABLES, CURVES, SENTENCES, TIMEOUTS
from purgatory.pipeline.transforms import survival
from purgatory.pipeline.transforms.hottest_keys import hottest_keys
from purgatory.pipeline.transforms.strata import flattened, with_strata, with_stratum

NAME: Final = "advise"
SUMMARY: Final = "Compute the timeouts by which most operations would complete, and their effect."
EXAMPLES: Final = """\
  %(prog)s build/dataset
      advice for each kind, and for the ten hottest keys of each purgatory
  %(prog)s build/dataset --hot-keys 50
      advice for fifty keys
"""

SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
# The share whose sentences are also printed.
PRINTED_SHARE: Final = 0.99


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hot-keys",
        type=whole_number(0),
        default=10,
        metavar="N",
        help="the number of keys in each purgatory, those with the most operations, that get advice like the "
        "kinds (default: %(default)s)",
    )


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    operations = dataset.read_operations(spark)
    if operations.isEmpty():
        raise PipelineError(
            f"{dataset.root}: no operations are compacted here; compact a journal that has some"
        )
    keys = (
        hottest_keys(operations, up_to=options.hot_keys).where("by = 'operations'").select("purgatory", "key")
    )
    this_run = dataset.new_run(ADVICE_TABLES)
    ends = survival.ends(with_strata(operations, keys))
    dataset.replace(CURVES, flattened(survival.curves(ends)), this_run)

    curves = with_stratum(dataset.read_derived(spark, CURVES))
    timeouts = flattened(survival.changes(curves, survival.timeouts(curves, SHARES)))
    dataset.replace(TIMEOUTS, timeouts, this_run)

    rows = dataset.read_derived(spark, TIMEOUTS).orderBy(*TIMEOUTS.order_by).collect()
    advice = [Advice(**row.asDict()) for row in rows]
    sentences = [(each.purgatory, each.kind, each.key, each.share, each.sentence()) for each in advice]
    dataset.replace(SENTENCES, spark.createDataFrame(sentences, SENTENCES.columns), this_run)

    for line in _table(advice):
        print(line)
    for each in advice:
        if each.share == PRINTED_SHARE:
            print(f"\n{each.sentence()}")


def _table(advice: Sequence[Advice]) -> Iterable[str]:
    header = ["", "operations", *(f"{100 * share:g} %" for share in SHARES)]
    rows = [header]
    for first in range(0, len(advice), len(SHARES)):
        of_stratum = advice[first : first + len(SHARES)]
        stratum = of_stratum[0]
        rows.append([stratum.stratum, f"{stratum.operations:,}", *(each.timeout for each in of_stratum)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
