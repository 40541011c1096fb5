"""A consumer group whose members are killed: what all of them have read."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final, Self

from tests.examples.broker.live.groups.group_consumers import CONSUMERS, MemberSettings, ReadRecord
from tests.examples.broker.live.groups.member_process import PROCESSES

# Seconds.
COMMIT_INTERVAL: Final = 1.0
# Seconds in which the system ends a killed process.
ENDS_WITHIN: Final = 30.0


class ReadingMember:
    """A process that reads and commits until it is killed, or until its client raises an exception.

    It tells of each record before it commits it. So what a killed member has not told of, another one reads.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self._connection, theirs = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=_read, args=(settings, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def told(self) -> Iterator[list[ReadRecord] | str]:
        """Return the records that it has read since, and the errors of its client."""
        try:
            while self._connection.poll():
                yield self._connection.recv()
        except (EOFError, OSError):
            # It has ended, perhaps within a message.
            return

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._process.join(ENDS_WITHIN)


class ReadingGroup:
    """A number of members, each of which is replaced when it ends. Call ``listen`` often.

    ``read`` has the values by partition and offset. ``faults`` tells of offsets that were read twice with
    different values. ``records`` counts those that came again, too, ``errors`` what the clients report.
    """

    def __init__(self, settings: MemberSettings, members: int) -> None:
        self.read: dict[tuple[int, int], bytes] = {}
        self.records = 0
        self.faults: list[str] = []
        self.errors: Counter[str] = Counter()
        self.started = 0
        self._settings = settings
        self._members = [self._new_member() for _ in range(members)]

    @classmethod
    @contextmanager
    def running(cls, settings: MemberSettings, members: int) -> Iterator[Self]:
        group = cls(settings, members)
        try:
            yield group
        finally:
            for member in group._members:
                member.kill()

    def __repr__(self) -> str:
        return (
            f"<ReadingGroup {self._settings.name} by {self._settings.client}: {len(self.read)} records, "
            f"read {self.records} times by {self.started} members, errors: {dict(self.errors)}>"
        )

    def listen(self) -> None:
        """Note what the members tell, and replace those that have ended."""
        for index, member in enumerate(self._members):
            # Look first: what it told before it ended is still there.
            is_alive = member.is_alive
            self._note(member)
            if not is_alive:
                self._members[index] = self._new_member()

    def kill(self, index: int) -> None:
        """Kill a member. ``listen`` replaces it."""
        self._members[index].kill()

    def _new_member(self) -> ReadingMember:
        self.started += 1
        return ReadingMember(replace(self._settings, name=f"{self._settings.name}-{self.started}"))

    def _note(self, member: ReadingMember) -> None:
        for news in member.told():
            if isinstance(news, str):
                self.errors[news] += 1
                continue
            for partition, offset, value in news:
                known = self.read.setdefault((partition, offset), value)
                self.records += 1
                if known != value:
                    self.faults.append(f"offset {offset} of {partition} was {known!r}, and later {value!r}")


class _Indifferent:
    def assigned(self, partitions: frozenset[int]) -> None:
        pass

    def revoked(self, partitions: frozenset[int]) -> None:
        pass


def _read(settings: MemberSettings, connection: Connection) -> None:
    try:
        consumer = CONSUMERS[settings.client](settings, _Indifferent())
        committed_at = time.monotonic()
        while True:
            records = consumer.poll()
            if records:
                connection.send(records)
            if time.monotonic() > committed_at + COMMIT_INTERVAL:
                committed_at = time.monotonic()
                try:
                    consumer.commit()
                except Exception as refused:
                    # For example, the group rebalances, or its coordinator fails.
                    connection.send(f"commit: {refused!r}"[:120])
    except Exception as failure:
        connection.send(f"ended by {failure!r}"[:200])
