"""The timeout advisor: from finished operations to the timeouts by which so many would complete."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.advice import Advice
from purgatory.pipeline.arguments import add_dataset, whole
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.tables import replace, withdraw
from purgatory.pipeline.transforms import survival
from purgatory.pipeline.transforms.hottest_keys import hottest_keys
from purgatory.pipeline.transforms.strata import flattened, of_kinds_and_keys, with_stratum

NAME: Final = "advise"
SUMMARY: Final = "find the timeouts by which most would complete, and what they would change"
EXAMPLES: Final = """\
  %(prog)s build/dataset
  %(prog)s build/dataset --hot-keys 50
"""

SHARES: Final = (0.5, 0.9, 0.95, 0.99, 0.999)
# The one that is also said in a sentence when the job ends.
SPOKEN: Final = 0.99

# The tables it writes, in this order.
CURVES: Final = "curves"
TIMEOUTS: Final = "timeouts"
SENTENCES: Final = "sentences"

# Each kind before its keys: null comes first.
_ORDER: Final = ("purgatory", "kind", "key", "share")
_SENTENCES: Final = "purgatory string, kind string, key string, share double, sentence string"


def add_arguments(parser: ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--hot-keys",
        type=whole(0),
        default=10,
        metavar="N",
        help="the keys of each purgatory to advise on besides its kinds, those with the most operations "
        "(default: %(default)s)",
    )


def run(spark: SparkSession, options: Namespace) -> None:
    dataset: Dataset = options.dataset
    operations = dataset.read_operations(spark)
    if operations.isEmpty():
        raise PipelineError(f"{dataset.root}: no operations are compacted here, so there is no advice either")
    keys = (
        hottest_keys(operations, up_to=options.hot_keys).where("by = 'operations'").select("purgatory", "key")
    )
    withdraw(spark, dataset.advice(SENTENCES))
    ends = survival.ends(of_kinds_and_keys(operations, keys))
    # A curve has a row for each distinct wait, so these are no table for one task to write. Spark removes
    # those that are there, and shows the new ones when they are whole.
    flattened(survival.curves(ends)).write.mode("overwrite").parquet(dataset.advice(CURVES))

    curves = with_stratum(spark.read.parquet(dataset.advice(CURVES)))
    timeouts = flattened(survival.changes(curves, survival.timeouts(curves, SHARES)))
    replace(dataset.advice(TIMEOUTS), timeouts, order_by=_ORDER)

    rows = spark.read.parquet(dataset.advice(TIMEOUTS)).orderBy(*_ORDER).collect()
    advice = [Advice(**row.asDict()) for row in rows]
    sentences = [(each.purgatory, each.kind, each.key, each.share, each.sentence()) for each in advice]
    replace(dataset.advice(SENTENCES), spark.createDataFrame(sentences, _SENTENCES), order_by=_ORDER)

    for line in _table(advice):
        print(line)
    for each in advice:
        if each.share == SPOKEN:
            print(f"\n{each.sentence()}")


def _table(advice: Sequence[Advice]) -> Iterable[str]:
    header = ["", "operations", *(f"{100 * share:g} %" for share in SHARES)]
    rows = [header]
    for first in range(0, len(advice), len(SHARES)):
        of_subject = advice[first : first + len(SHARES)]
        stratum = of_subject[0]
        rows.append([stratum.stratum, f"{stratum.operations:,}", *(each.timeout for each in of_subject)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
