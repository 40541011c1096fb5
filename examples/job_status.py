"""Wait for the next status of a job: the long poll that many web APIs offer.

    python -m examples.job_status

A client that asks again and again, at intervals, either learns of a change late or asks too often. Here the
client names the last status it has seen. It gets an answer as soon as the status differs, or the same status
again after its timeout.
"""

from __future__ import annotations

import asyncio
import enum

from purgatory import Purgatory


class Status(enum.Enum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"


class Jobs:
    """The status of every job, and a method that waits for the next one."""

    def __init__(self, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._statuses: dict[str, Status] = {}

    def set_status(self, job: str, status: Status) -> None:
        self._statuses[job] = status
        self._purgatory.check_and_complete(job)

    async def next_status(self, job: str, seen: Status, timeout: float) -> Status:
        """Return the job's status as soon as it differs from `seen`, or `seen` after `timeout` seconds."""

        def changed() -> Status | None:
            status = self._statuses[job]
            return status if status is not seen else None

        try:
            return await self._purgatory.wait_until(changed, [job], timeout) or seen
        except TimeoutError:
            return seen


async def work(jobs: Jobs, job: str) -> None:
    await asyncio.sleep(0.05)
    jobs.set_status(job, Status.RUNNING)
    await asyncio.sleep(0.25)
    jobs.set_status(job, Status.SUCCEEDED)


async def main() -> None:
    async with Purgatory("jobs") as purgatory, asyncio.TaskGroup() as tasks:
        jobs = Jobs(purgatory)
        jobs.set_status("report-7", Status.QUEUED)
        tasks.create_task(work(jobs, "report-7"))
        seen = Status.QUEUED
        while seen is not Status.SUCCEEDED:
            status = await jobs.next_status("report-7", seen, timeout=0.1)
            print(f"report-7: {'still ' if status is seen else ''}{status.value}")
            seen = status


if __name__ == "__main__":
    asyncio.run(main())
