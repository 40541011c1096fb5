"""Synthetic operations with known distributions, with the columns of a journal.

The random values of some operations depend on the seed and on the number of the first operation. So the rows
are the same on every cluster.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa

from purgatory.journal.schema import CHECKS_SCHEMA, OPERATIONS_SCHEMA
from purgatory.pipeline.sql import select
from purgatory.pipeline.workload import Workload

# Uniform values from 0 to below 1, by the names of their purposes.
_UNIFORM: Final = (
    *("node", "kind", "started", "withdrawn", "withdrawal", "lateness"),
    *("tries", "hot", "first_key", "two_keys", "second_key"),
)
# The operations of one node have their own run of a writer, and so their own upper half of the ids. The tick
# is a millisecond, and an operation is less than a tick late. It is tried when it is offered, and a random
# number of times without success, two on average.
_OPERATIONS: Final = """
WITH drawn AS (
    SELECT
        rows.*, nodes.node AS of_node, kinds.kind AS of_kind, run, timeout_us,
        round(least(median_us * exp(sigma * normal), 1e15))::BIGINT AS completion_us,
        if(withdrawn < {withdrawn}, floor(withdrawal * timeout_us)::BIGINT, NULL) AS withdrawal_us,
        if(hot < {hot}, 1, {first_key}) AS first,
        {second_key} AS second
    FROM rows
    JOIN nodes ON nodes.number = floor(rows.node * {nodes})
    JOIN kinds ON kinds.number = floor(rows.kind * {kinds})
),
ended AS (
    SELECT
        *,
        CASE
            WHEN completion_us < least(timeout_us, withdrawal_us) THEN 'completed'
            WHEN withdrawal_us IS NOT NULL THEN 'cancelled'
            ELSE 'expired'
        END AS outcome,
        if(outcome = 'expired', floor(lateness * 1000)::BIGINT, NULL) AS lateness_us
    FROM drawn
)
SELECT
    of_node AS node, lower(of_kind) AS purgatory, run << 32 | id AS operation_id, of_kind AS kind,
    if(two_keys < 0.25 AND first != second, ['key-' || first, 'key-' || second], ['key-' || first]) AS keys,
    instant({start_us} + floor(started * {duration_us})) AS started,
    timeout_us,
    CASE outcome
        WHEN 'completed' THEN completion_us
        WHEN 'cancelled' THEN withdrawal_us
        ELSE timeout_us + lateness_us
    END AS waited_us,
    lateness_us, outcome,
    1 + floor(-2.5 * ln(1 - tries)) + (outcome = 'completed')::INTEGER AS tries
FROM ended ORDER BY id
"""
# There is one check for each operation that was tried again, at its end.
_CHECKS: Final = """
SELECT node, purgatory, keys[1] AS key, instant(ended_us(started, waited_us)) AS checked,
    tries - 1 AS tried, (outcome = 'completed')::INTEGER AS completed
FROM rows WHERE tries > 1
"""
_DEFECTS: Final = 9
_DEFECTIVE: Final = """
SELECT * EXCLUDE (defect) REPLACE (
    CASE defect WHEN 0 THEN NULL WHEN 1 THEN '' ELSE kind END AS kind,
    if(defect = 2, [NULL], keys) AS keys,
    CASE defect WHEN 3 THEN NULL WHEN 4 THEN instant(-14_182_940_000_000) ELSE started END AS started,
    if(defect = 5, -1 - waited_us, waited_us) AS waited_us,
    if(defect = 6, waited_us + 1, lateness_us) AS lateness_us,
    if(defect = 7, 'forgotten', outcome) AS outcome,
    if(defect = 8, 0, tries) AS tries
)
FROM rows
"""


def operations(workload: Workload, first: int, count: int) -> pa.Table:
    """Operations with the numbers from `first` on, with the columns of a journal's operations."""
    draw = np.random.default_rng([workload.seed, first])
    rows = {"id": np.arange(first, first + count), "normal": draw.standard_normal(count)}
    rows |= {purpose: draw.random(count) for purpose in _UNIFORM}
    runs = np.random.default_rng(workload.seed).integers(1 << 31, size=workload.nodes)
    nodes = {
        "number": range(workload.nodes),
        "node": [f"node-{number}" for number in range(workload.nodes)],
        "run": runs,
    }
    kinds = {
        "number": range(len(workload.kinds)),
        "kind": [each.name for each in workload.kinds],
        "median_us": [1e6 * each.median for each in workload.kinds],
        "sigma": [each.sigma for each in workload.kinds],
        "timeout_us": [round(1e6 * each.timeout) for each in workload.kinds],
    }
    query = _OPERATIONS.format(
        nodes=workload.nodes,
        kinds=len(workload.kinds),
        withdrawn=workload.withdrawn,
        hot=workload.hot,
        first_key=_rank("first_key", workload),
        second_key=_rank("second_key", workload),
        start_us=round(workload.start.timestamp() * 1e6),
        duration_us=round(workload.duration * 1e6),
    )
    return _typed(
        select(query, pa.table(rows), nodes=pa.table(nodes), kinds=pa.table(kinds)), OPERATIONS_SCHEMA
    )


def checks(operations: pa.Table) -> pa.Table:
    """The checks that tried these operations, with the columns of a journal's checks."""
    return _typed(select(_CHECKS, operations), CHECKS_SCHEMA)


def with_defects(operations: pa.Table, workload: Workload, first: int) -> pa.Table:
    """Add defects to a share of the operations, whose numbers begin with `first`."""
    draw = np.random.default_rng([workload.seed, first, _DEFECTS])
    count = operations.num_rows
    malformed, defects = draw.random(count) < workload.malformed, draw.integers(_DEFECTS, size=count)
    chosen = pa.array(np.where(malformed, defects, -1))
    return _typed(select(_DEFECTIVE, operations.append_column("defect", chosen)), OPERATIONS_SCHEMA)


def _rank(uniform: str, workload: Workload) -> str:
    """SQL for a rank from 1 to `keys`: the whole part of x with the density x ** -zipf.

    Zipf's law has whole x.
    """
    power, end = 1 - workload.zipf, workload.keys + 1.0
    if math.isclose(power, 0, abs_tol=1e-9):
        x = f"pow({end}, {uniform})"
    else:
        x = f"pow(1 + {uniform} * {end**power - 1!r}, {1 / power!r})"
    return f"least(floor({x}), {workload.keys})::BIGINT"


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the types of the schema. Any column and any list may have nulls."""
    types = {field.name: field.type for field in schema}
    lists = {name: pa.list_(kind.value_type) for name, kind in types.items() if pa.types.is_list(kind)}
    return rows.cast(pa.schema((types | lists).items()))
