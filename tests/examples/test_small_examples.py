"""The small examples do what they say they show."""

from __future__ import annotations

import asyncio

import pytest

from examples import job_status, quorum, sessions
from examples.job_status import Status
from examples.quorum import WriteOutcome
from purgatory.testing import VirtualTimeLoop


def test_a_write_is_acknowledged_by_a_quorum_or_tells_who_had_it_in_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        outcomes = runner.run(quorum.main())

    assert outcomes == [
        WriteOutcome(acknowledged=True, stored_by=("amsterdam",)),
        WriteOutcome(acknowledged=True, stored_by=("amsterdam", "berlin")),
        WriteOutcome(acknowledged=False, stored_by=("amsterdam", "berlin")),
    ]
    assert "3 of 3 within 0.1 s: not acknowledged in time" in capsys.readouterr().out


def test_a_job_status_is_told_when_it_changes_and_again_when_patience_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        seen = runner.run(job_status.main())

    assert seen == [Status.QUEUED, Status.RUNNING, Status.RUNNING, Status.RUNNING, Status.SUCCEEDED]
    assert capsys.readouterr().out.splitlines() == [
        "report-7 is running",
        "report-7 is still running",
        "report-7 is still running",
        "report-7 is succeeded",
    ]


def test_sessions_live_while_they_beat_and_end_when_they_fall_silent_or_log_out() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(sessions.main()) == ["ada", "grace"]
