"""Five minutes in which a replica slows down and produces expire, recorded in a journal within seconds.

The simulation runs in virtual time: the loop's clock jumps to the next timer, so nothing waits in real time.
The operations, the checks and the timing wheel are real. The times that followers' fetches take are made up.
The same seed tells the same story.

    python -m examples.broker.simulator.story build/journal
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio

from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_fetcher import Leader, LogOffsets
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import Fetched, FetchParams
from examples.broker.simulator.report import Report
from examples.broker.simulator.simulation import LEADER_ID, Simulation
from examples.broker.simulator.workload import Workload
from examples.broker.topic_partition import TopicPartition
from purgatory.journal import JournalWriter
from purgatory.testing import VirtualTimeLoop

WORKLOAD: Final = Workload(rate=200, batch=10, record_size=10, duration=300.0)
# Seconds. Three of the four producers have a timeout that is too short. The fourth has a longer one, which
# shows how long the others would have to wait.
PRODUCE_TIMEOUTS: Final = (0.1, 0.1, 0.1, 2.0)
# Seconds that a follower's fetch takes: the median of a log-normal distribution with this sigma.
USUAL: Final = 0.004
SLOW: Final = 0.06
SIGMA: Final = 0.5
SLOW_REPLICA: Final = 2
# The part of the story in which that replica is slow.
SLOW_FROM: Final = 0.4
SLOW_UNTIL: Final = 0.7


class Link:
    """A leader as a follower reaches it. Each fetch takes a while, and longer while the replica is slow."""

    def __init__(self, leader: Leader, replica_id: int, workload: Workload) -> None:
        self._leader = leader
        self._draw = random.Random(f"{workload.seed}/{replica_id}")
        began, duration = asyncio.get_running_loop().time(), workload.duration
        slow = replica_id == SLOW_REPLICA
        self._slow_from = began + SLOW_FROM * duration if slow else math.inf
        self._slow_until = began + SLOW_UNTIL * duration

    def __repr__(self) -> str:
        return f"<Link to {self._leader!r}>"

    async def fetch(self, params: FetchParams, request: FollowerRequest) -> Fetched:
        is_slow = self._slow_from <= asyncio.get_running_loop().time() < self._slow_until
        await anyio.sleep((SLOW if is_slow else USUAL) * self._draw.lognormvariate(0, SIGMA))
        return await self._leader.fetch(params, request)

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        return await self._leader.offsets(topic_partition, leader_epoch)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story, and say what happened. Returns the exit status: 1 if records were lost."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.broker.simulator.story",
        description="Record five minutes of produces and fetches, in virtual time. A replica slows down.",
        epilog="example: %(prog)s build/report/journal (`make report` does this, and makes a page of it)",
    )
    parser.add_argument("journal", type=Path, metavar="DIR", help="the directory of the journal")
    directory: Path = parser.parse_args(arguments).journal
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{directory}: {error.strerror}; choose a directory that can be made")
    began = time.monotonic()
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        report = runner.run(tell(WORKLOAD, directory))
    took = time.monotonic() - began
    produce = report.drained.produce
    slow = [WORKLOAD.duration / 60 * part for part in (SLOW_FROM, SLOW_UNTIL)]
    print(
        f"{WORKLOAD.duration / 60:g} minutes of virtual time have passed in {took:.0f} s. Replica "
        f"{SLOW_REPLICA} was slow from minute {slow[0]:g} to minute {slow[1]:g}: {produce.expired:,} of "
        f"{produce.completed + produce.expired:,} produces expired.\nThe journal is in {directory}"
    )
    if report.failure is not None:
        print(f"delivery is wrong: {report.failure}", file=sys.stderr)
        return 1
    return 0


async def tell(workload: Workload, directory: Path) -> Report:
    """Run the story with this workload, on a loop with virtual time, and record it."""
    async with (
        JournalWriter(directory) as journal,
        ReplicaManager.running(HostedPartitions(LEADER_ID), observers=[journal]) as broker,
    ):
        simulation = Simulation(
            workload,
            broker,
            asyncio.get_running_loop().time,
            leader=lambda replica_id: Link(broker, replica_id, workload),
            produce_timeouts=PRODUCE_TIMEOUTS,
        )
        return await simulation.run()


if __name__ == "__main__":
    sys.exit(main())
