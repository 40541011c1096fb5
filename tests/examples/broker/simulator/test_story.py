"""The story of a replica that slows down."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from examples.broker.simulator import story
from examples.broker.simulator.report import Report
from purgatory.testing import VirtualTimeLoop

Row = dict[str, Any]

SHORT = replace(story.WORKLOAD, duration=20.0)


def told(directory: Path, seed: int = 0) -> tuple[Report, list[Row]]:
    """The report, and the recorded produces and fetches."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        report = runner.run(story.tell(replace(SHORT, seed=seed), directory))
    return report, pq.read_table(directory / "operations").sort_by("operation_id").to_pylist()


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, list[Row]]:
    return told(tmp_path_factory.mktemp("first"))


def test_produces_with_the_short_timeout_expire_while_the_replica_is_slow(
    first: tuple[Report, list[Row]],
) -> None:
    report, operations = first
    began = min(row["started"] for row in operations)
    slow = [began + timedelta(seconds=SHORT.duration * part) for part in (story.SLOW_FROM, story.SLOW_UNTIL)]
    produces = [row for row in operations if row["kind"] == "DelayedProduce"]
    expired = [row for row in produces if row["outcome"] == "expired"]

    assert report.failure is None
    assert 20 < len(expired) < len(produces) / 2
    assert {row["timeout_us"] for row in expired} == {100_000}
    late = timedelta(seconds=0.5)
    assert all(slow[0] - late <= row["started"] <= slow[1] + late for row in expired)
    counts = Counter(row["timeout_us"] for row in produces)
    assert counts[100_000] / counts[2_000_000] == pytest.approx(3, rel=0.05)
    longest = max(row["waited_us"] for row in produces if row["timeout_us"] == 2_000_000)
    assert 100_000 < longest < 2_000_000, "the others would have to wait as long"


@pytest.mark.slow
def test_the_same_seed_tells_the_same_story(first: tuple[Report, list[Row]], tmp_path: Path) -> None:
    def waits(operations: list[Row]) -> list[tuple[object, ...]]:
        # What waits at the end is cancelled in no certain order.
        ended = (row for row in operations if row["outcome"] != "cancelled")
        return [(row["kind"], row["keys"], row["waited_us"], row["outcome"]) for row in ended]

    assert waits(told(tmp_path / "again")[1]) == waits(first[1])
    assert waits(told(tmp_path / "other", seed=1)[1]) != waits(first[1])


def test_the_command_says_what_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(story, "WORKLOAD", SHORT)

    assert story.main([str(tmp_path / "journal")]) == 0
    printed = capsys.readouterr().out
    assert "produces expired" in printed
    assert f"The journal is in {tmp_path}/journal" in printed
