"""A real process under load is killed at moments that a seed chooses, again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import IO

import pytest


class Oracle:
    """Reads what the service says, and knows what it has promised."""

    def __init__(self, said: IO[str]) -> None:
        self._said = said
        self.stored: set[int] = set()
        # Whether the cancellation was answered with True; None if it was not answered.
        self.cancelled: dict[int, bool | None] = {}
        self.delivered: defaultdict[int, int] = defaultdict(int)
        self.noted: set[int] = set()

    def hear(self) -> list[str]:
        line = self._said.readline().split()
        assert line, "the service has ended"
        match line:
            case ["stored", number]:
                self.stored.add(int(number))
            case ["cancel", number]:
                self.cancelled[int(number)] = None
            case ["cancelled", number, answer]:
                self.cancelled[int(number)] = answer == "True"
            case ["deliver", number, due, now]:
                assert float(now) >= float(due), "early"
                assert not self.cancelled.get(int(number)), "delivered after it was cancelled"
                assert int(number) not in self.noted, (
                    "delivered again though the log says that it was delivered"
                )
            case ["delivered", number]:
                self.delivered[int(number)] += 1
            case ["noted", number]:
                self.noted.add(int(number))
        return line

    def hear_until(self, word: str) -> list[str]:
        while (line := self.hear())[0] != word:
            pass
        return line

    @property
    def missing(self) -> set[int]:
        """What was promised and is not delivered yet."""
        in_doubt = {number for number, answer in self.cancelled.items() if answer is not False}
        return self.stored - in_doubt - set(self.delivered)

    @property
    def doubled(self) -> int:
        return sum(count > 1 for count in self.delivered.values())


@contextmanager
def service(directory: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str], IO[str]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.delayed.killed_service", directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield process, process.stdin, process.stdout
        process.stdin.close()


def kill_again_and_again(directory: Path, kills: int, seed: int) -> Oracle:
    random = Random(seed)
    with service(directory) as (_, order, said):
        oracle = Oracle(said)
        for number in range(1, kills + 1):
            print(number, file=order, flush=True)
            pid = int(oracle.hear_until("pid")[1])
            # Sometimes before the store is open.
            for _ in range(random.choice([0, 1, 10, 100, 1_000, random.randrange(2_000)])):
                oracle.hear()
            os.kill(pid, signal.SIGKILL)
            oracle.hear_until("ended")
        # The last process schedules nothing.
        print(0, file=order, flush=True)
        pid = int(oracle.hear_until("pid")[1])
        oracle.hear_until("ready")
        while oracle.missing:
            oracle.hear()
        os.kill(pid, signal.SIGKILL)
        oracle.hear_until("ended")
    return oracle


def check(oracle: Oracle, kills: int) -> None:
    assert not oracle.missing
    assert len(oracle.stored) > kills * 10
    assert sum(answer is True for answer in oracle.cancelled.values()) > kills


def check_doubled(*oracles: Oracle) -> None:
    # A delivery is noted within 10 ms and a sync. So few were not noted yet when the process was killed. A
    # process that is killed right after its start has only delivered what was overdue, all at once, and
    # repeats most of it. So this takes lives of all lengths.
    doubled = sum(oracle.doubled for oracle in oracles)
    assert doubled < sum(len(oracle.delivered) for oracle in oracles) / 10


@pytest.mark.slow
@pytest.mark.real_time
def test_twenty_kills_lose_nothing_and_double_only_what_was_being_delivered(tmp_path: Path) -> None:
    oracle = kill_again_and_again(tmp_path, 20, seed=6)
    check(oracle, 20)
    check_doubled(oracle)


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.timeout(600)
def test_two_hundred_kills_lose_nothing_and_double_only_what_was_being_delivered(tmp_path: Path) -> None:
    oracles = [kill_again_and_again(tmp_path / str(seed), 20, seed) for seed in range(10)]
    for oracle in oracles:
        check(oracle, 20)
    check_doubled(*oracles)
