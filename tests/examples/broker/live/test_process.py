"""``python -m examples.broker`` as a process: typed commands and a clean stop."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from examples.broker.errors import ErrorCode
from examples.broker.node.remote_leader import RemoteLeader
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.requests import Fetched, FetchParams, PartitionFetch
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.live_cluster import PATIENCE, until

pytestmark = pytest.mark.real_time

COMMAND = (
    # Python reports unclosed resources and unawaited coroutines on stderr.
    *(sys.executable, "-W", "always::ResourceWarning", "-W", "always::RuntimeWarning"),
    *("-m", "examples.broker", "--brokers", "3", "--port", "0", "--broker-session-timeout", "1"),
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

    @property
    def output(self) -> str:
        # Its end may be a part of a character, which is not written whole yet.
        return self._stdout.read_bytes().decode(errors="ignore")

    @property
    def errors(self) -> str:
        return self._stderr.read_text()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        found = until(lambda: re.match(r"bootstrap\.servers=(\S+)\n", self.output), explain=self.explain)
        assert found is not None
        servers = [server.rpartition(":") for server in found[1].split(",")]
        return [(host, int(port)) for host, _, port in servers]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self.addresses)

    def explain(self) -> str:
        return f"{self.process.poll()}: {self.output[-3000:]}\n{self.errors}"

    def type(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, command: str, expected: str) -> re.Match[str]:
        """Type a command until its output matches."""

        def ask() -> re.Match[str] | None:
            before = len(self.output)
            self.type(command)
            answer = until(lambda: _whole(self.output[before:]), explain=self.explain)
            return re.search(expected, answer)

        found = until(ask, explain=self.explain)
        assert found is not None
        return found

    def ended(self) -> int:
        return self.process.wait(PATIENCE)


def _whole(answer: str) -> str:
    """Return a line or a table once it is complete."""
    return answer if answer.endswith("┘\n" if "┏" in answer else "\n") else ""


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[BrokerProcess]:
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
        yield BrokerProcess(process, stdout_path, stderr_path)
        process.kill()


@pytest.fixture
def admin(brokers: BrokerProcess) -> AdminClient:
    """An admin client. Its topic has three partitions, which brokers 1, 2 and 3 lead."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    topic = NewTopic(TOPIC, num_partitions=3, replica_assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    admin.create_topics([topic])[TOPIC].result(PATIENCE)
    return admin


def leaders(admin: AdminClient) -> list[int]:
    partitions = admin.list_topics(TOPIC, PATIENCE).topics[TOPIC].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def produced(producer: Producer, value: str, *, partition: int) -> list[object]:
    """Produce a record; return the list that gets its error or None once it is answered."""
    answers: list[object] = []
    producer.produce(
        TOPIC, value, partition=partition, on_delivery=lambda error, message: answers.append(error)
    )
    return answers


async def long_poll(host: str, port: int, partition: int) -> Fetched:
    connection = await PeerConnection.open(host, port, "long poll")
    try:
        leader = RemoteLeader(connection, FetchParams().replica_id)
        fetch = FollowerRequest({TopicPartition(TOPIC, partition): PartitionFetch(0)})
        return await leader.fetch(FetchParams(max_wait=600.0), fetch)
    finally:
        await connection.aclose()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, "quit"], ids=["SIGINT", "SIGTERM", "quit"])
def test_a_stop_answers_pending_requests_frees_the_ports_and_prints_nothing_else(
    brokers: BrokerProcess, admin: AdminClient, stop: signal.Signals | str
) -> None:
    addresses = brokers.addresses
    consumer = Consumer({"bootstrap.servers": brokers.bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.subscribe([TOPIC])
    until(lambda: consumer.poll(0.05) or len(consumer.assignment()) == 3)
    with start_blocking_portal() as portal:
        polls: list[Future[Fetched]] = [
            portal.start_task_soon(long_poll, host, port, index)
            for index, (host, port) in enumerate(addresses)
        ]
        for broker_id in (1, 2, 3):
            # The fetches of two followers, of the consumer, and this one.
            brokers.answer("purgatories", rf"│ {broker_id} +│ fetch +│ +4 ")
        assert not any(poll.done() for poll in polls)
        if isinstance(stop, signal.Signals):
            brokers.process.send_signal(stop)
        else:
            brokers.type(stop)
        answers = [poll.result(PATIENCE) for poll in polls]
    for index, answer in enumerate(answers):
        error = answer[TopicPartition(TOPIC, index)].error
        assert error in (ErrorCode.none, ErrorCode.not_leader_or_follower)
    assert brokers.ended() == 0
    assert brokers.output.endswith("stopping: answering the pending requests\n")
    assert brokers.errors == "", brokers.errors
    for address in addresses:
        with socket.socket() as taken:
            # The brokers set it, too, since their closed connections linger.
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(address)
    consumer.close()


def test_a_broker_killed_by_command_leads_nothing_until_it_is_started_and_elected(
    brokers: BrokerProcess, admin: AdminClient
) -> None:
    assert leaders(admin) == [1, 2, 3]
    brokers.answer("kill 2", "done")
    until(lambda: leaders(admin) == [1, 3, 3], explain=brokers.explain)
    brokers.answer("brokers", r"│ 2 +│ [0-9.:]+ +│ stopped +│ 0 ")
    brokers.answer("start 2", "done")
    brokers.answer("topics", rf"│ {TOPIC}-1 +│ 3 +│ \d+ +│ 2 3 1 +│ 2 3 1 ")
    brokers.answer("elect", "partitions that have their preferred leader again: 1")
    until(lambda: leaders(admin) == [1, 2, 3], explain=brokers.explain)
    brokers.type("quit")
    assert brokers.ended() == 0
    assert brokers.errors == "", brokers.errors


def test_a_broker_paused_by_command_loses_its_leaderships_and_follows_when_it_resumes(
    brokers: BrokerProcess, admin: AdminClient
) -> None:
    brokers.answer("pause 3", "done")
    # A client would wait for the paused broker, so type a command.
    brokers.answer("topics", rf"│ {TOPIC}-2 +│ 1 +│ \d+ +│ 1 2 +│ 3 1 2 ")
    brokers.answer("resume 3", "done")
    brokers.answer("topics", rf"│ {TOPIC}-2 +│ 1 +│ \d+ +│ 3 1 2 +│ 3 1 2 ")
    brokers.type("quit")
    assert brokers.ended() == 0
    assert brokers.errors == "", brokers.errors


def test_a_follower_paused_by_command_delays_acks_all(brokers: BrokerProcess, admin: AdminClient) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    brokers.answer("pause-follower 2", "done")
    brokers.answer("brokers", r"│ 2 +│ [0-9.:]+ +│ running +│ 1 +│ 3 +│ nothing ")
    answers = produced(producer, "held up", partition=0)
    brokers.answer("purgatories", r"│ 1 +│ produce +│ +1 ")
    assert producer.poll(0) == 0
    assert answers == []
    brokers.answer("resume-follower 2", "done")
    assert producer.flush(PATIENCE) == 0
    assert answers == [None]


def test_when_nobody_reads_the_output_any_more_the_brokers_go_on() -> None:
    with subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=REPOSITORY
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"bootstrap.servers=")
        process.stdout.close()
        process.stdin.write(b"brokers\nstop 1\nbrokers\nquit\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 0


def test_without_standard_input_the_brokers_go_on(brokers: BrokerProcess, admin: AdminClient) -> None:
    assert brokers.process.stdin is not None
    brokers.process.stdin.close()
    producer = Producer({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    answers = produced(producer, "served", partition=1)
    assert producer.flush(PATIENCE) == 0
    assert answers == [None]
    brokers.process.send_signal(signal.SIGTERM)
    assert brokers.ended() == 0
    assert brokers.errors == "", brokers.errors
