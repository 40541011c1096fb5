"""Duplicate rows are found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.transforms.duplicates import duplicates, identities, placed
from tests.pipeline.journals import NOON, add_segment, operation

# In the segments 1 and 2: the node, the id, and the tries of each operation.
SEGMENTS = (
    [("c", 1, 0), ("b", 1, 44), ("a", 2, 55), ("a", 2, 55), ("b", 3, 66), ("a", 1, 11), ("a", 1, 33)],
    [("a", 1, 22)],
)
KNOWN = [("a", 2), ("b", 4)]


def test_all_but_the_first_of_each_identity_are_duplicates_and_all_whose_identity_is_known(
    spark: Spark, tmp_path: Path
) -> None:
    first, second = (
        str(add_segment(tmp_path, name, [operation(id, node=node, tries=tries) for node, id, tries in rows]))
        for name, rows in zip("12", SEGMENTS, strict=True)
    )
    known = str(add_segment(tmp_path, "known", [operation(id, node=node) for node, id in KNOWN]))
    for order in ([first, second], [second, first]):
        found = duplicates(spark, OPERATIONS_TABLE, order, [known])
        # The row of no tries is malformed.
        assert {path: sorted(positions) for path, positions in found.items()} == {
            first: [2, 3, 6],
            second: [0],
        }


def test_valid_rows_of_a_segment_have_their_places_and_known_rows_come_before_them(tmp_path: Path) -> None:
    path = str(add_segment(tmp_path, "one", [operation(1), operation(2, tries=0), operation(3)]))
    columns = ["operation_id", "position", "segment"]
    (of_segment,) = placed(OPERATIONS_TABLE, {path: 7}, path, columns)
    assert of_segment.select(columns).to_pylist() == [
        {"operation_id": 1, "position": 0, "segment": 7},
        {"operation_id": 3, "position": 2, "segment": 7},
    ]
    (known,) = placed(OPERATIONS_TABLE, {}, path, columns)
    assert known.select(columns).to_pylist()[1] == {"operation_id": 2, "position": 1, "segment": -1}


@pytest.mark.parametrize(
    ("files", "duplicate"),
    [
        ([[1, 2], [3]], False),
        ([[1, 2], [2]], True),
        ([[1, 2, 1]], True),
    ],
    ids=["none", "in two files", "in one file"],
)
def test_it_is_known_whether_there_are_any(
    files: list[list[int]], duplicate: bool, spark: Spark, tmp_path: Path
) -> None:
    paths = [
        str(add_segment(tmp_path, f"{number}", [operation(each) for each in ids]))
        for number, ids in enumerate(files)
    ]
    rows, distinct = identities(spark, OPERATIONS_TABLE, paths)
    assert (rows, distinct < rows) == (sum(map(len, files)), duplicate)


def test_rows_that_differ_in_one_part_of_their_identity_are_no_duplicates(
    spark: Spark, tmp_path: Path
) -> None:
    rows = [
        operation(),
        operation(node="b"),
        operation(purgatory="produce"),
        operation(started=NOON + timedelta(days=1)),
    ]
    path = add_segment(tmp_path, "one", rows)
    assert identities(spark, OPERATIONS_TABLE, [str(path)]) == (4, 4)
    # The rest does not matter, nor does the time of the day.
    alike = add_segment(tmp_path, "two", [operation(started=NOON + timedelta(seconds=1), tries=7)])
    assert identities(spark, OPERATIONS_TABLE, [str(path), str(alike)]) == (5, 4)
