"""A member of a consumer group in its own process, so that it can be killed."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock

from tests.examples.broker.live.clients.client_interface import ConsumerSettings, ReadRecord
from tests.examples.broker.live.clients.python_clients import Client
from tests.examples.broker.live.live_cluster import PATIENCE, until

# The fork server imports the clients once for all members.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])


class Command(Enum):
    COMMIT = "commit"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Moved:
    """``gained`` partitions are assigned, others revoked, ``at`` a time of the clock that processes share."""

    gained: bool
    partitions: frozenset[int]
    at: float


@dataclass(frozen=True, slots=True)
class Complaint:
    """What the client has raised. After a fatal one the process ends."""

    reason: str
    is_fatal: bool


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does. It commits by itself every ``commit_interval`` seconds, unless that is None."""

    client: Client
    bootstrap_servers: str
    topic: str
    settings: ConsumerSettings
    commit_interval: float | None = None


class Member:
    """A member's process: the events that it has reported, and the commands that it takes."""

    def __init__(self, job: Job) -> None:
        self.name = job.settings.client_id
        self.instance_id = job.settings.instance_id
        self.moves: list[Moved] = []
        """The changes of its partitions, in order. A member that is ended has no partitions any more."""
        self.reads: list[ReadRecord] = []
        """Each record read, in order."""
        self.complaints: list[Complaint] = []
        self._commits = 0
        self._connection, theirs = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_consume, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __repr__(self) -> str:
        return f"<Member {self.name} of {sorted(self.partitions)}, complaints: {self.complaints}>"

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions that it has now."""
        self.listen()
        held: frozenset[int] = frozenset()
        for move in self.moves:
            held = held | move.partitions if move.gained else held - move.partitions
        return held

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    @property
    def failure(self) -> str | None:
        return next((complaint.reason for complaint in self.complaints if complaint.is_fatal), None)

    def listen(self) -> None:
        """Process the events that it has reported."""
        # When it has ended, perhaps within a message, there are no more.
        with suppress(EOFError, OSError):
            while self._connection.poll():
                self._note(self._connection.recv())

    def reads_of(self, partition: int) -> list[int]:
        self.listen()
        return [read.offset for read in self.reads if read.partition == partition]

    def commit(self) -> None:
        """Commit the offsets of all records read."""
        before = self._commits
        self._connection.send(Command.COMMIT)
        until(lambda: self._heard_commits() > before or self.complaints, explain=lambda: self)
        assert not self.complaints, self

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
        self.moves.append(Moved(False, self.partitions, time.monotonic()))

    def _end(self) -> None:
        # Its events may be more than the pipe holds.
        until(self._has_ended, explain=lambda: self)
        self._process.join(PATIENCE)

    def _has_ended(self) -> bool:
        self.listen()
        return not self.is_alive

    def _heard_commits(self) -> int:
        self.listen()
        return self._commits

    def _note(self, event: object) -> None:
        match event:
            case Moved():
                self.moves.append(event)
            case Complaint():
                self.complaints.append(event)
            case list():
                self.reads += event
            case Command.COMMIT:
                self._commits += 1

    def _signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)


class _Reporter:
    """The listener in the member's process."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Some clients call it in another thread.
        self._lock = Lock()

    def assigned(self, partitions: frozenset[int]) -> None:
        self.send(Moved(True, partitions, time.monotonic()))

    def revoked(self, partitions: frozenset[int]) -> None:
        self.send(Moved(False, partitions, time.monotonic()))

    def send(self, event: object) -> None:
        with self._lock:
            self._connection.send(event)


def _consume(job: Job, connection: Connection) -> None:
    reporter = _Reporter(connection)
    try:
        with job.client.consumer(job.bootstrap_servers, job.settings) as consumer:
            consumer.subscribe(job.topic, reporter)
            for command in _commands(job, connection):
                if command is Command.CLOSE:
                    return
                if command is Command.COMMIT:
                    try:
                        consumer.commit()
                    except Exception as refused:
                        # For example, the group rebalances, or its coordinator fails.
                        reporter.send(Complaint(repr(refused), is_fatal=False))
                    else:
                        reporter.send(Command.COMMIT)
                if records := consumer.poll(job.settings.fetch_max_wait):
                    reporter.send(records)
    except Exception as failure:
        reporter.send(Complaint(repr(failure), is_fatal=True))
        raise


def _commands(job: Job, connection: Connection) -> Iterator[Command | None]:
    """Yield the next command, or None to go on reading."""
    committed_at = time.monotonic()
    while True:
        if job.commit_interval is not None and time.monotonic() > committed_at + job.commit_interval:
            committed_at = time.monotonic()
            yield Command.COMMIT
        yield connection.recv() if connection.poll() else None
