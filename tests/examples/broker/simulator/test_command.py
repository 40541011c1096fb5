"""The simulator's command line."""

import importlib.util
from pathlib import Path

import anyio
import pyarrow.parquet as pq
import pytest

from examples.broker.simulator.command import INTERRUPTED, WRONG_DELIVERY, main
from examples.broker.storage.log import PartitionLog
from examples.broker.storage.record_batch import RecordBatch
from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS

SHORT = ["--duration", "0.2", "--rate", "5000"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rate", "0"], "--rate: must be a number above 0, not '0'"),
        (["--rate", "fast"], "--rate: must be a number above 0, not 'fast'"),
        (["--duration", "inf"], "--duration: must be a number above 0, not 'inf'"),
        (["--max-wait", "-1"], "--max-wait: must be a number 0 or more, not '-1'"),
        (["--batch", "1.5"], "--batch: must be a whole number, 1 or more, not '1.5'"),
        (["--replicas", "0"], "--replicas: must be a whole number, 1 or more, not '0'"),
        (["--acks", "2"], "--acks: invalid choice: '2'"),
        (
            ["--consumers", "7"],
            "7 consumers for 6 partitions: each partition has one consumer, so use at most 6",
        ),
        (["--batch", "2", "--record-size", "10"], "a batch of 2 x 10 bytes is too small"),
    ],
)
def test_invalid_options_are_explained(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.real_time
def test_a_journal_has_every_wait_and_its_path_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "runs" / "journal"
    assert main([*SHORT, "--no-display", "--journal", str(directory)]) == 0
    assert f"The journal of this run is in {directory}\n" in capsys.readouterr().out
    operations = pq.read_table(directory / OPERATIONS).to_pylist()
    assert {(row["purgatory"], row["kind"]) for row in operations} == {
        ("produce", "DelayedProduce"),
        ("fetch", "DelayedFetch"),
    }
    assert all(row["keys"] and all(key.startswith("events-") for key in row["keys"]) for row in operations)
    assert pq.read_table(directory / CHECKS).num_rows > 0
    assert pq.read_table(directory / GAPS).num_rows == 0


def test_an_impossible_journal_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit):
        main([*SHORT, "--journal", str(tmp_path / "file")])
    assert "file: File exists" in capsys.readouterr().err
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main([*SHORT, "--journal", str(tmp_path / "journal")])
    assert "--journal: pyarrow is not installed; pip install" in capsys.readouterr().err


def test_a_wrong_delivery_fails_the_command_loudly(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    append = PartitionLog.append_as_leader

    def append_twice(log: PartitionLog, batch: RecordBatch, leader_epoch: int) -> int:
        append(log, batch, leader_epoch)
        return append(log, batch, leader_epoch)

    monkeypatch.setattr(PartitionLog, "append_as_leader", append_twice)
    assert main([*SHORT, "--no-display"]) == WRONG_DELIVERY
    captured = capsys.readouterr()
    assert "DELIVERY IS WRONG" in captured.out
    assert "delivery is wrong: partition events-" in captured.err


def test_an_interrupted_run_reports_nothing_verified(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(anyio, "run", interrupted)
    assert main([*SHORT, "--no-display"]) == INTERRUPTED
    assert "the delivery was not verified" in capsys.readouterr().err
