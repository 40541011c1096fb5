"""Journals and datasets may have any names, in every locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from purgatory.pipeline import locations
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import compact, prune, watch
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from tests.pipeline.journals import add_segment, operation
from tests.pipeline.odd_names import ODD_NAMES, REFUSED_NAMES
from tests.pipeline.settings import SETTINGS


def ids(dataset: Dataset) -> list[int]:
    files = map(locations.parquet, dataset.table(OPERATIONS_TABLE).paths())
    return sorted(row["operation_id"] for file in files for row in file.read(["operation_id"]).to_pylist())


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_journal_and_a_dataset_may_have_any_name(
    name: str, spark: Spark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = add_segment(tmp_path / name / "journal", name, [operation(1), operation(1), operation(2)])
    root = f"{tmp_path}/{'dataset' if name in REFUSED_NAMES else name}/dataset"
    options = parser().parse_args(["compact", f"{tmp_path}/{name}/journal/", root])
    compact.check(options)
    compact.run(spark, options)
    assert ids(Dataset(root)) == [1, 2]
    (listed,) = Dataset(root).segments.rows().to_pylist()
    assert listed["source"] == str(path)
    assert watch.run(spark, parser().parse_args(["watch", f"{tmp_path}/{name}/journal", "--once"])) == 0
    assert "2026-03-01 12:00:00           3  100.0 %" in capsys.readouterr().out
    prune.run(spark, parser().parse_args(["prune", f"{tmp_path}/{name}/journal", root, "--days", "0"]))
    assert not path.exists()


@pytest.mark.long
@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_a_name_may_have_letters_that_the_locale_does_not_have(locale: str, tmp_path: Path) -> None:
    add_segment(tmp_path / "é" / "journal", "é", [operation(1)])
    root = f"{tmp_path}/é/dataset"
    command = [sys.executable, "-m", "purgatory.pipeline", "compact", f"{tmp_path}/é/journal", root]
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    done = subprocess.run(
        [*command, "--master", "local[1]", "--memory", "1g", *settings],
        env={**environment, "LC_ALL": locale},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert ids(Dataset(root)) == [1]
