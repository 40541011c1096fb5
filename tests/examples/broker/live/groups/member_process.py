"""A member of a consumer group in its own process, so that it can be killed."""

import os
import signal
import time
from dataclasses import dataclass
from enum import Enum
from multiprocessing import get_context
from multiprocessing.connection import Connection

from tests.examples.broker.live.groups.group_consumers import CONSUMERS, MemberSettings
from tests.examples.broker.live.live_cluster import PATIENCE, until

# The fork server imports the clients once for all members.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


class Command(Enum):
    COMMIT = "commit"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Assigned:
    """``at`` is the time of the monotonic clock, which all processes share."""

    at: float
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Revoked:
    at: float
    partitions: frozenset[int]


@dataclass(frozen=True, slots=True)
class Read:
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Committed:
    pass


@dataclass(frozen=True, slots=True)
class Failed:
    reason: str


class Member:
    """A member's process: the events that it has reported, and the commands that it takes."""

    def __init__(self, settings: MemberSettings) -> None:
        self.name = settings.name
        self.session_timeout = settings.session_timeout
        self.instance_id = settings.instance_id
        self.moves: list[Assigned | Revoked] = []
        """The changes of its partitions, in order. A member that is ended has no partitions any more."""
        self.reads: list[tuple[int, int]] = []
        """The partition and offset of each record read, in order."""
        self.failure: str | None = None
        self._commits = 0
        self._connection, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_consume, args=(settings, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __repr__(self) -> str:
        return f"<Member {self.name} of {sorted(self.partitions)}, failure: {self.failure}>"

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that it has now."""
        self.listen()
        held: frozenset[int] = frozenset()
        for move in self.moves:
            held = held | move.partitions if isinstance(move, Assigned) else held - move.partitions
        return held

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def listen(self) -> None:
        """Process the events that it has reported."""
        try:
            while self._connection.poll():
                self._note(self._connection.recv())
        except (EOFError, ConnectionResetError):
            # It has ended, and all of its events are processed.
            self._process.join(PATIENCE)

    def reads_of(self, partition: int) -> list[int]:
        self.listen()
        return [offset for index, offset in self.reads if index == partition]

    def commit(self) -> None:
        """Commit the offsets of all records read."""
        before = self._commits
        self._connection.send(Command.COMMIT)
        until(lambda: self._heard_commits() > before or self.failure, explain=lambda: self)
        assert self.failure is None, self

    def close(self) -> None:
        """Close the client. A dynamic member leaves its group by that."""
        self.begin_to_close()
        self.finish_closing()

    def begin_to_close(self) -> None:
        # Not every client reports the partitions that it loses when it closes.
        self._give_up()
        self._connection.send(Command.CLOSE)

    def finish_closing(self) -> None:
        self._end()
        assert self._process.exitcode == 0, self

    def kill(self) -> None:
        """End it by SIGKILL."""
        self._process.kill()
        self._end()
        self._give_up()

    def suspend(self) -> None:
        """Stop the process by SIGSTOP, with its connections open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _give_up(self) -> None:
        self.moves.append(Revoked(time.monotonic(), self.partitions))

    def _end(self) -> None:
        # Its events may be more than the pipe holds.
        until(self._has_ended, explain=lambda: self)

    def _has_ended(self) -> bool:
        self.listen()
        return not self.is_alive

    def _heard_commits(self) -> int:
        self.listen()
        return self._commits

    def _note(self, event: object) -> None:
        match event:
            case Assigned() | Revoked():
                self.moves.append(event)
            case Read(partition, offset):
                self.reads.append((partition, offset))
            case Committed():
                self._commits += 1
            case Failed(reason):
                self.failure = reason

    def _signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)


class _Teller:
    """The listener in the member's process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def assigned(self, partitions: frozenset[int]) -> None:
        self._connection.send(Assigned(time.monotonic(), partitions))

    def revoked(self, partitions: frozenset[int]) -> None:
        self._connection.send(Revoked(time.monotonic(), partitions))


def _consume(settings: MemberSettings, connection: Connection) -> None:
    try:
        consumer = CONSUMERS[settings.client](settings, _Teller(connection))
        while True:
            for record in consumer.poll():
                connection.send(Read(record.partition, record.offset))
            if not connection.poll():
                continue
            match connection.recv():
                case Command.COMMIT:
                    consumer.commit()
                    connection.send(Committed())
                case Command.CLOSE:
                    consumer.close()
                    return
    except Exception as failure:
        connection.send(Failed(repr(failure)))
        raise
