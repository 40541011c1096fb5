"""Tables that a job replaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from purgatory.pipeline import files
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.tables import replace


def numbers(spark: SparkSession, path: Path) -> list[int]:
    return [row.id for row in spark.read.parquet(str(path)).collect()]


def test_new_rows_replace_the_old_ones_in_order(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    replace(str(table), spark.range(9), order_by=("id",))

    assert replace(str(table), spark.range(3, 0, -1), order_by=("id",)) == 3

    assert numbers(spark, table) == [1, 2, 3]
    assert len(list(table.glob("*.parquet"))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_if_writing_fails_the_old_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    replace(str(table), spark.range(3), order_by=("id",))

    with pytest.raises(Exception, match="on purpose"):
        replace(str(table), spark.range(9).selectExpr("raise_error('on purpose') AS id"), order_by=("id",))

    assert numbers(spark, table) == [0, 1, 2]


def test_if_the_new_table_cannot_be_renamed_the_error_says_where_it_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FileSystemThatCannotRename:
        """Deletes, but renames nothing."""

        def delete(self, path: object, recursive: bool) -> bool:
            return True

        def rename(self, source: object, target: object) -> bool:
            return False

    monkeypatch.setattr(files, "_open", lambda spark, path: (FileSystemThatCannotRename(), path))
    table = tmp_path / "table"

    with pytest.raises(
        PipelineError, match=r"table\.unfinished is complete, but could not be renamed to .*table;"
    ):
        replace(str(table), spark.range(2), order_by=("id",))

    assert numbers(spark, tmp_path / "table.unfinished") == [0, 1]
