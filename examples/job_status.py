"""A job-status wait: "tell me when the job's status is no longer what I know", the long poll of many APIs.

    python -m examples.job_status

A client that asks at intervals learns late or asks often. This one names the status that it has seen and is
answered the moment there is another, or with the same one when its patience ends.
"""

from __future__ import annotations

import enum

import anyio

from examples.event_loop import run
from purgatory import Purgatory


class Status(enum.Enum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"


class Jobs:
    """The status of every job, and a way to wait for the next one."""

    def __init__(self, purgatory: Purgatory) -> None:
        self._purgatory = purgatory
        self._status: dict[str, Status] = {}

    def set(self, job: str, status: Status) -> None:
        self._status[job] = status
        self._purgatory.check_and_complete(job)

    async def changed(self, job: str, seen: Status, timeout: float) -> Status:
        """The job's status as soon as it differs from `seen`; `seen` again after `timeout` seconds."""

        def other_status() -> Status | None:
            status = self._status[job]
            return status if status is not seen else None

        try:
            return await self._purgatory.wait_until(other_status, [job], timeout) or seen
        except TimeoutError:
            return seen


async def work(jobs: Jobs, job: str) -> None:
    for status, seconds in [(Status.RUNNING, 0.05), (Status.SUCCEEDED, 0.25)]:
        await anyio.sleep(seconds)
        jobs.set(job, status)


async def main() -> list[Status]:
    seen = [Status.QUEUED]
    async with Purgatory("jobs") as purgatory, anyio.create_task_group() as task_group:
        jobs = Jobs(purgatory)
        jobs.set("report-7", Status.QUEUED)
        task_group.start_soon(work, jobs, "report-7")
        while seen[-1] is not Status.SUCCEEDED:
            status = await jobs.changed("report-7", seen[-1], timeout=0.1)
            print(f"report-7 is {'still ' if status is seen[-1] else ''}{status.value}")
            seen.append(status)
    return seen


if __name__ == "__main__":
    run(main)
