"""An object store that is not there, refuses a key, or answers only some requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from purgatory.journal.schema import CHECKS
from purgatory.pipeline import locations, stores
from purgatory.pipeline.batches import Batches, BatchFiles
from purgatory.pipeline.command import FAILED, main
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs.compact import compact
from purgatory.pipeline.schemas import CHECKS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import RECOMMENDATIONS
from tests.pipeline.datasets import listed
from tests.pipeline.journals import ROWS, add_segment, segment
from tests.pipeline.object_store import KEY, SECRET, environment, names, served, ship
from tests.pipeline.unreliable import DROPPED, REFUSED, UNANSWERED, unreliable

NO_BUCKET = "the object store has no such bucket; correct the address, or make the bucket"
REFUSES = "the object store refuses the key; check the variables with the key, and its rights"
SILENT = "the object store does not answer; check the network and AWS_ENDPOINT_URL"


@contextmanager
def at(endpoint: str, monkeypatch: pytest.MonkeyPatch, spark: Spark | None = None) -> Iterator[None]:
    """Use the store at this address until the block ends."""
    with monkeypatch.context() as patched:
        for name, value in environment(endpoint).items():
            patched.setenv(name, value)
            if spark is not None:
                patched.setitem(spark.context.environment, name, value)
        stores.client.cache_clear()
        yield
    stores.client.cache_clear()


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark must not start."""
    monkeypatch.delattr(Spark, "context")


def commands(journal: str, dataset: str, page: str) -> list[list[str]]:
    return [
        ["compact", journal, dataset],
        ["summarize", dataset],
        ["run", journal, dataset, page],
        ["prune", journal, dataset],
        ["report", dataset, page],
    ]


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command says when it fails."""
    assert main(arguments) == FAILED
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert SECRET not in line
    assert KEY not in line
    return line


@pytest.mark.usefixtures("no_spark")
def test_a_bucket_that_is_not_there_is_named(bucket: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in commands("s3://none/journal", "s3://none/dataset", "s3://none/page"):
        assert said(arguments, capsys) == f"purgatory-pipeline: none: {NO_BUCKET}"


@pytest.mark.usefixtures("no_spark")
def test_a_page_in_a_bucket_that_is_not_there_is_refused_before_the_work(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_segment(tmp_path, "one", [])
    line = said(["run", str(tmp_path), f"{bucket}/dataset", "s3://none/page"], capsys)
    assert line == f"purgatory-pipeline: none: {NO_BUCKET}"
    assert names(bucket) == []


@pytest.mark.usefixtures("no_spark")
def test_a_key_that_the_store_does_not_know_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(INITIAL_NO_AUTH_ACTION_COUNT="0") as endpoint, at(endpoint, monkeypatch):
        for arguments in commands("s3://any/journal", "s3://any/dataset", "s3://any/page"):
            assert said(arguments, capsys) == f"purgatory-pipeline: any: {REFUSES}"


@pytest.mark.usefixtures("no_spark")
def test_a_store_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with at(f"http://127.0.0.1:{port}", monkeypatch):
        for arguments in commands("s3://any/journal", "s3://any/dataset", "s3://any/page")[:2]:
            assert said(arguments, capsys) == f"purgatory-pipeline: any: {SILENT}"


@pytest.mark.parametrize("fault", [REFUSED, DROPPED])
def test_requests_are_repeated(
    fault: str,
    spark: Spark,
    endpoint: str,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add_segment(tmp_path, "one", [ROWS[CHECKS]] * 3, table=CHECKS)
    ship(tmp_path, f"{bucket}/journal")
    dataset = Dataset(f"{bucket}/dataset")
    with unreliable(endpoint, fault) as proxy, at(proxy, monkeypatch, spark):
        compact(spark, f"{bucket}/journal", dataset, CHECKS_TABLE, 1000)
        assert dataset.table(CHECKS_TABLE).rows().num_rows == 3


@pytest.mark.parametrize("log", ["checks", "segments", "quarantine"])
def test_a_batch_is_committed_once_if_the_answer_of_the_store_is_lost(
    log: str, endpoint: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(f"{bucket}/dataset", token="mine-")
    Batches(dataset, CHECKS_TABLE)
    pattern = rf"PUT .*/{log}/_delta_log/0+1\.json"
    with unreliable(endpoint, UNANSWERED, pattern) as proxy, at(proxy, monkeypatch):
        batches = Batches(dataset, CHECKS_TABLE)
        files = BatchFiles(
            rows=dataset.table(CHECKS_TABLE).write_table(segment(CHECKS, [ROWS[CHECKS]])),
            quarantine=[],
            segments=dataset.segments.write_rows([listed(CHECKS_TABLE, 1, 1)]),
        )
        batches.commit(files)
        batches.clean()
    again = Batches(dataset, CHECKS_TABLE)
    assert again.last == 1
    assert dataset.segments.rows().num_rows == 1
    (path,) = dataset.table(CHECKS_TABLE).paths()
    assert locations.parquet(path).read().num_rows == 1


@pytest.mark.parametrize("runs", [1, 2])
def test_a_table_is_replaced_once_if_the_answer_of_the_store_is_lost(
    runs: int, endpoint: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(f"{bucket}/dataset")
    before, after = (
        pa.Table.from_pylist([{"purgatory": name} for name in names], RECOMMENDATIONS.columns)
        for names in (("before",), ("a", "b"))
    )
    for run in range(1, runs):
        dataset.replace(RECOMMENDATIONS, before, run)
    pattern = rf"PUT .*/recommendations/_delta_log/0+{runs - 1}\.json"
    with unreliable(endpoint, UNANSWERED, pattern) as proxy, at(proxy, monkeypatch):
        dataset.replace(RECOMMENDATIONS, after, runs)
    stored = dataset.derived(RECOMMENDATIONS)
    assert stored.rows()["purgatory"].to_pylist() == ["a", "b"]
    assert len(stored.paths()) == 1
    assert dataset.new_run([RECOMMENDATIONS]) == runs + 1
