"""Each small example prints the lines that it is meant to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from examples import job_status, quorum, sessions
from purgatory import Purgatory
from purgatory.testing import VirtualTimeLoop

JOB_STATUS = """\
report-7: running
report-7: still running
report-7: still running
report-7: succeeded
"""

QUORUM = """\
quorum of 1: acknowledged; stored by amsterdam; missing: berlin, cairo
quorum of 2: acknowledged; stored by amsterdam, berlin; missing: cairo
quorum of 3: not acknowledged in time; stored by amsterdam, berlin; missing: cairo
"""

SESSIONS = """\
ada has sent no heartbeat for 0.12 s; online: grace, linus
grace has sent no heartbeat for 0.12 s; online: linus
linus has logged out; online: nobody
"""


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("main", "printed"),
    [
        pytest.param(job_status.main, JOB_STATUS, id="job_status"),
        pytest.param(quorum.main, QUORUM, id="quorum"),
        pytest.param(sessions.main, SESSIONS, id="sessions"),
    ],
)
def test_a_small_example_prints_exactly_these_lines(
    main: Callable[[], Coroutine[None, None, None]], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())

    assert capsys.readouterr().out == printed


def test_a_quorum_that_all_replicas_reach_misses_none() -> None:
    outcome = quorum.WriteOutcome(acknowledged=True, stored_by=tuple(quorum.REPLICAS))

    assert str(outcome) == "acknowledged; stored by amsterdam, berlin, cairo; missing: none"


async def test_a_heartbeat_after_the_session_has_ended_is_refused(virtual_time: VirtualTimeLoop) -> None:
    async with Purgatory() as purgatory:
        online = sessions.Sessions(purgatory, timeout=10)
        online.log_in("ada")
        await asyncio.sleep(9)
        assert online.heartbeat("ada")
        await asyncio.sleep(9)
        assert online.heartbeat("ada")
        await asyncio.sleep(11)
        assert not online.heartbeat("ada")


async def test_an_old_session_ends_without_harm_to_the_one_that_has_replaced_it(
    virtual_time: VirtualTimeLoop, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Purgatory() as purgatory:
        online = sessions.Sessions(purgatory, timeout=10)
        online.log_in("ada")
        await asyncio.sleep(5)
        online.log_in("ada")
        await asyncio.sleep(6)
        assert online.heartbeat("ada"), "the first session has expired, and the second one has not"
        await asyncio.sleep(11)
        assert not online.heartbeat("ada")
        online.log_out("ada")
    assert capsys.readouterr().out.count("no heartbeat") == 1
