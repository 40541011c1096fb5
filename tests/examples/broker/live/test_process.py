"""``python -m examples.broker`` as a process: typed commands and a clean stop."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.broker.protocol.apis import FETCH
from tests.examples.broker.live.bad_input.raw_client import RawClient, frame_of
from tests.examples.broker.live.bad_input.valid_requests import fetch_of
from tests.examples.broker.live.clients.client_interface import ProducerSettings, Record
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.live_cluster import PATIENCE, until

pytestmark = pytest.mark.real_time

COMMAND = (
    # Python reports unclosed resources and unawaited coroutines on stderr.
    *(sys.executable, "-W", "always::ResourceWarning", "-W", "always::RuntimeWarning"),
    *("-m", "examples.broker", "--brokers", "3", "--port", "0", "--broker-session-timeout", "60"),
    *("--group-initial-rebalance-delay", "0", "--log-level", "warning"),
)
REPOSITORY = Path(__file__).parents[4]
TOPIC = "events"


class BrokerProcess:
    """The process with its standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes], stdout: Path, stderr: Path) -> None:
        self.process = process
        self._stdout = stdout
        self._stderr = stderr
        found = until(lambda: re.match(r"bootstrap\.servers=(\S+)\n", self.output), explain=self.explain)
        assert found is not None
        self.bootstrap_servers = found[1]

    @property
    def output(self) -> str:
        # Its end may be a part of a character, which is not written whole yet.
        return self._stdout.read_bytes().decode(errors="ignore")

    @property
    def addresses(self) -> list[tuple[str, int]]:
        servers = [server.rpartition(":") for server in self.bootstrap_servers.split(",")]
        return [(host, int(port)) for host, _, port in servers]

    def explain(self) -> str:
        return f"{self.process.poll()}: {self.output[-3000:]}\n{self._stderr.read_text()}"

    def type(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, command: str, expected: str) -> None:
        """Type a command until its output matches."""

        def ask() -> re.Match[str] | None:
            before = len(self.output)
            self.type(command)
            answer = until(lambda: _whole(self.output[before:]), explain=self.explain)
            return re.search(expected, answer)

        until(ask, explain=self.explain)

    def assert_ends(self) -> None:
        """Wait for its end. Raises AssertionError when it reports anything on stderr."""
        assert self.process.wait(PATIENCE) == 0, self.explain()
        assert self._stderr.read_text() == ""


def _whole(answer: str) -> str:
    """Return a line or a table once it is complete."""
    return answer if answer.endswith("┘\n" if "┏" in answer else "\n") else ""


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A process with a topic of three partitions, which brokers 1, 2 and 3 lead."""
    stdout_path, stderr_path = tmp_path / "stdout", tmp_path / "stderr"
    with (
        stdout_path.open("wb") as stdout,
        stderr_path.open("wb") as stderr,
        subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=REPOSITORY,
            env={**os.environ, "COLUMNS": "160", "PYTHONUNBUFFERED": "1"},
        ) as process,
    ):
        try:
            brokers = BrokerProcess(process, stdout_path, stderr_path)
            admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
            topic = NewTopic(TOPIC, num_partitions=3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
            admin.create_topics([topic])[TOPIC].result(PATIENCE)
            yield brokers
        finally:
            process.kill()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, "quit"], ids=["SIGINT", "SIGTERM", "quit"])
def test_a_stop_answers_pending_requests_frees_the_ports_and_prints_nothing_else(
    brokers: BrokerProcess, stop: signal.Signals | str
) -> None:
    addresses = brokers.addresses
    with ExitStack() as stack:
        polls = [stack.enter_context(RawClient.connected(address)) for address in addresses]
        for index, poll in enumerate(polls):
            request = fetch_of(TOPIC, max_wait=600_000, partition={"partition": index})
            poll.send(frame_of(FETCH, request))
        for broker_id in (1, 2, 3):
            # The fetches of two followers, and this one.
            brokers.answer("purgatories", rf"│ {broker_id} +│ fetch +│ +3 ")
        if isinstance(stop, signal.Signals):
            brokers.process.send_signal(stop)
        else:
            brokers.type(stop)
        for poll in polls:
            (topic,) = poll.response(FETCH)["responses"]
            assert topic["partitions"][0]["error_code"] in ("none", "not_leader_or_follower")
    brokers.assert_ends()
    assert brokers.output.endswith("stopping: answering the pending requests\n")
    for address in addresses:
        with socket.socket() as taken:
            # The brokers set it, too, since their closed connections linger.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)


def test_without_standard_input_the_brokers_go_on(brokers: BrokerProcess) -> None:
    assert brokers.process.stdin is not None
    brokers.process.stdin.close()
    with Confluent().producer(brokers.bootstrap_servers, ProducerSettings()) as producer:
        assert producer.send(TOPIC, Record(b"served")) == [0]
    brokers.process.send_signal(signal.SIGTERM)
    brokers.assert_ends()
