"""A consumer group whose members are killed: what all of them have read."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

from tests.examples.broker.live.groups.member_process import Job, Member


class ReadingGroup:
    """A number of members, each of which is replaced when it ends. Call ``listen`` often.

    A member tells of each record before it commits it. So what a killed member has not told of, another one
    reads.

    ``read`` has the values by partition and offset. ``faults`` tells of offsets that were read twice with
    different values. ``records`` counts those that came again, too, ``errors`` what the clients report.
    """

    def __init__(self, job: Job, members: int) -> None:
        self.read: dict[tuple[int, int], bytes | None] = {}
        self.records = 0
        self.faults: list[str] = []
        self.errors: Counter[str] = Counter()
        self.started = 0
        self._job = job
        self._members = [self._new_member() for _ in range(members)]

    @classmethod
    @contextmanager
    def running(cls, job: Job, members: int) -> Iterator[Self]:
        group = cls(job, members)
        try:
            yield group
        finally:
            for member in group._members:
                member.kill()

    def __repr__(self) -> str:
        return (
            f"<ReadingGroup by {self._job.client.name}: {len(self.read)} records, "
            f"read {self.records} times by {self.started} members, errors: {dict(self.errors)}>"
        )

    def listen(self) -> None:
        """Note what the members tell, and replace those that have ended."""
        for index, member in enumerate(self._members):
            # Look first: what it told before it ended is still there.
            is_alive = member.is_alive
            member.listen()
            self._note(member)
            if not is_alive:
                self._members[index] = self._new_member()

    def kill(self, index: int) -> None:
        """Kill a member. ``listen`` replaces it."""
        self._members[index].kill()

    def _new_member(self) -> Member:
        self.started += 1
        settings = replace(self._job.settings, client_id=f"{self._job.settings.group_id}-{self.started}")
        return Member(replace(self._job, settings=settings))

    def _note(self, member: Member) -> None:
        self.errors.update(complaint.reason[:120] for complaint in member.complaints)
        self.records += len(member.reads)
        for partition, offset, record in member.reads:
            known = self.read.setdefault((partition, offset), record.value)
            if known != record.value:
                self.faults.append(f"{partition}-{offset} was {known!r}, and later {record.value!r}")
        member.complaints.clear()
        member.reads.clear()
