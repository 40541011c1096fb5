"""The command `advise`: a verdict on each timeout, and what other timeouts would do."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from dataclasses import replace as replaced
from functools import partial
from itertools import groupby
from textwrap import fill
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.addresses import absolute
from purgatory.pipeline.advise import survival
from purgatory.pipeline.advise.effects import effects
from purgatory.pipeline.advise.evidence import Effect, Evidence, Reading
from purgatory.pipeline.advise.strata import present_timeouts
from purgatory.pipeline.advise.verdict import GOAL, UNLESS, Verdict, alike, compared, decide
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile
from purgatory.pipeline.exchange import gather, map_files
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import select
from purgatory.pipeline.summarize.hottest_keys import hottest_keys, ranked
from purgatory.pipeline.tables import ADVICE_TABLES, CURVES, EFFECTS, TIMEOUTS, VERDICTS
from purgatory.pipeline.text import printable

SHARES: Final = (0.5, 0.9, 0.95, GOAL, 0.999)
# The number of timeouts that a verdict names, if operations have different timeouts.
_NAMED_TIMEOUTS: Final = 3

_TIMEOUTS: Final = pa.schema(
    [("purgatory", pa.string()), ("kind", pa.string()), ("key", pa.string()), ("timeout_us", pa.int64())]
)

# The purgatory, the kind, and the key. The key is None for the whole kind.
Stratum = tuple[str, str, str | None]


def check(options: Namespace) -> None:
    Dataset(options.dataset).check_compacted()


def run(spark: Spark, options: Namespace) -> None:
    dataset = Dataset(options.dataset)
    files = dataset.files()
    if not files[OPERATIONS]:
        dataset.clear(ADVICE_TABLES)
        print(f"No operation is compacted in {dataset.root} yet, so there is nothing to advise.")
        return
    hot = _hot_keys(spark, files, options.hot_keys)
    this_run = dataset.new_run(ADVICE_TABLES)
    stored = replaced(dataset, root=absolute(dataset.root), token=f"{uuid4().hex[:12]}-").derived(CURVES)
    parts = (present_timeouts(hot, up_to=_NAMED_TIMEOUTS), survival.curves(hot, stored.write_in_worker))
    written: list[DataFile] = []
    try:
        found = gather(spark, files, parts)
        written += (DataFile(**row) for row in found["curves"].to_pylist())
        dataset.replace_files(CURVES, written, this_run)
    finally:
        # A task that failed, or that Spark has repeated, leaves files, too.
        stored.remove(stored.folders() - {file.folder for file in written})
    of_curves = partial(map_files, spark, stored.paths(), stored.columns)

    dataset.replace(TIMEOUTS, of_curves(partial(survival.timeouts, SHARES)), this_run)
    readings = [Reading(**row) for row in dataset.derived(TIMEOUTS).rows().to_pylist()]

    mixtures = _mixtures(found["present_timeouts"])
    cases = [Evidence(each, mixtures[each.stratum], {}) for each in readings if each.share == GOAL]
    dataset.replace(EFFECTS, of_curves(partial(effects, _timeouts(readings, cases))), this_run)
    of_strata = _effects(dataset.derived(EFFECTS).rows().to_pylist())
    verdicts = compared([decide(replaced(each, effects=of_strata[each.p99.stratum])) for each in cases])
    told = pa.Table.from_pylist([asdict(each) for each in verdicts], VERDICTS.columns)
    dataset.replace(VERDICTS, told, this_run)

    for line in (*_spoken(verdicts), "", fill(UNLESS, 88), "", *_table(readings)):
        print(line)


def _hot_keys(spark: Spark, files: Mapping[str, Sequence[str]], up_to: int) -> pa.Table:
    """The keys with the most operations in each purgatory."""
    keys = gather(spark, files, [hottest_keys(up_to=up_to)])["hottest_keys"]
    hottest = ranked(keys, up_to=up_to)
    return select("SELECT purgatory, key FROM rows WHERE \"by\" = 'operations'", hottest)


def _mixtures(presents: pa.Table) -> Mapping[Stratum, list[tuple[int | None, int]]]:
    """The most frequent timeouts of each stratum, with the number of operations that have them."""
    mixtures: dict[Stratum, list[tuple[int | None, int]]] = {}
    for row in presents.sort_by("rank").to_pylist():
        stratum = row["purgatory"], row["kind"], row["key"]
        mixtures.setdefault(stratum, []).append((row["timeout_us"], row["operations"]))
    return mixtures


def _timeouts(readings: Sequence[Reading], cases: Sequence[Evidence]) -> pa.Table:
    """The timeouts whose effects are computed: the timeouts of the shares and of the verdicts."""
    of_shares = {(*each.stratum, each.timeout_us) for each in readings if each.timeout_us is not None}
    of_verdicts = {(*each.p99.stratum, timeout) for each in cases for timeout in each.candidates}
    rows = (dict(zip(_TIMEOUTS.names, each, strict=True)) for each in of_shares | of_verdicts)
    return pa.Table.from_pylist(list(rows), _TIMEOUTS)


def _effects(rows: Iterable[dict[str, Any]]) -> Mapping[Stratum, Mapping[int, Effect]]:
    """The effect of each timeout of each stratum."""
    by_stratum: dict[Stratum, dict[int, Effect]] = {}
    for row in rows:
        stratum, timeout = (row.pop("purgatory"), row.pop("kind"), row.pop("key")), row.pop("timeout_us")
        by_stratum.setdefault(stratum, {})[timeout] = Effect(**row)
    return by_stratum


def _spoken(verdicts: Sequence[Verdict]) -> Iterable[str]:
    """The verdict on each kind, and then the verdicts on its keys that behave differently."""
    for number, (_, of_kind) in enumerate(groupby(verdicts, key=lambda each: (each.purgatory, each.kind))):
        if number:
            yield ""
        kind, *keys = of_kind
        for each in (kind, *(key for key in keys if not key.as_kind)):
            yield f"{printable(each.stratum)}: {each.advice}"
            yield _indented(each.reason)
        yield from map(_indented, alike(keys))


def _indented(text: str) -> str:
    return fill(printable(text), 88, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _table(readings: Sequence[Reading]) -> Iterable[str]:
    header = ["would complete by", "operations", *(f"{100 * share:g} %" for share in SHARES)]
    rows = [header]
    for (_, kind, key), of_stratum in groupby(readings, key=lambda each: each.stratum):
        first, *others = of_stratum
        name = f"{kind} in {first.purgatory}" + ("" if key is None else f" on {key}")
        rows.append([printable(name), f"{first.operations:,}", *(each.timeout for each in (first, *others))])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
