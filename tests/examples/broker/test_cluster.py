"""Brokers that are started, stopped, killed and paused, by call and by typed command."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from io import StringIO

import anyio
import pytest
from kio.schema.list_groups.v4 import ListGroupsRequest
from rich.console import Console as Terminal

from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.console import COMMANDS, Console
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.errors import ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState
from examples.broker.protocol.apis import LIST_GROUPS
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.requests import ALL_ACKS, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.usefixtures("virtual_time")

CONFIG = ClusterConfig(brokers=3, port=0, defaults=ClusterDefaults(default_replication_factor=3))
EVENTS = TopicPartition("events", 0)
# Typed lines, and what their answers say.
TABLES = {
    "brokers": "127.0.0.1:",
    "topics": "events-0",
    "purgatories": "delete records",
    "help": "pause-follower BROKER",
}
MISTAKES = {
    "explode": "unknown command 'explode'",
    "kill": "usage: kill BROKER",
    "kill 1 2": "usage: kill BROKER",
    "topics 1": "usage: topics",
    "kill one": "each parameter is a number; usage: kill BROKER",
    "slow-down 1": "usage: slow-down BROKER SECONDS",
    "slow-down 1 much": "each parameter is a number; usage: slow-down BROKER SECONDS",
    "slow-down 1 -1": "a request cannot wait -1 seconds; choose 0 or more",
    "slow-down 1 nan": "a request cannot wait nan seconds; choose 0 or more",
    "kill 9": "broker 9 is not running",
    "start 2": "broker 2 cannot be started",
}


@asynccontextmanager
async def running(config: ClusterConfig = CONFIG) -> AsyncIterator[Cluster]:
    """A running cluster.

    It is no fixture: a fixture ends in another task than it began, a task group must not.
    """
    async with Cluster.running(config) as cluster:
        for node in cluster.nodes.values():
            await node.admin.auto_create(["events"])
        yield cluster


def state(cluster: Cluster) -> PartitionState:
    state = cluster.controller.image.partition(EVENTS)
    assert state is not None
    return state


async def until_leader_is_other_than(cluster: Cluster, broker_id: int) -> None:
    while state(cluster).leader in (broker_id, NO_LEADER):
        await cluster.controller.image_after(cluster.controller.image.version)


async def until_in_sync(cluster: Cluster, broker_id: int) -> None:
    while broker_id not in state(cluster).in_sync:
        await cluster.controller.image_after(cluster.controller.image.version)


async def printed(cluster: Cluster, line: str) -> str:
    terminal = Terminal(file=StringIO(), width=120)
    terminal.print(await Console(cluster, terminal).answer(line.split()))
    assert isinstance(terminal.file, StringIO)
    return terminal.file.getvalue()


async def test_a_killed_broker_leads_until_its_session_ends_and_returns_with_its_port_and_logs(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with running() as cluster:
        broker_id = state(cluster).leader
        port = cluster.nodes[broker_id].port
        log = cluster.nodes[broker_id].replicas.partitions.leader(EVENTS).log
        await cluster.kill(broker_id)
        assert broker_id not in cluster.nodes
        # No more heartbeats come, so this deadline is final.
        (session,) = cluster.controller.session_purgatory.operations(broker_id)
        await until_leader_is_other_than(cluster, broker_id)
        assert session.expired
        assert session.deadline == virtual_time.time()
        await cluster.start(broker_id)
        assert cluster.nodes[broker_id].port == port
        restored = cluster.nodes[broker_id].replicas.partitions.get(EVENTS)
        assert restored is not None
        assert restored.log is log
        await until_in_sync(cluster, broker_id)


@pytest.mark.parametrize("harm", [Cluster.pause, Cluster.cut_off])
async def test_a_broker_that_is_not_reached_loses_its_leaderships_and_follows_when_it_resumes(
    harm: Callable[[Cluster, int], None],
) -> None:
    async with running() as cluster:
        lost = state(cluster).leader
        harm(cluster, lost)
        await until_leader_is_other_than(cluster, lost)
        cluster.resume(lost)
        await until_in_sync(cluster, lost)
        assert state(cluster).leader != lost


async def test_the_connections_of_a_broker_that_is_cut_off_break_and_each_new_one() -> None:
    async with running() as cluster:
        port = cluster.nodes[1].port
        before = await PeerConnection.open("127.0.0.1", port, "client")
        cluster.cut_off(1)
        for connection in (before, await PeerConnection.open("127.0.0.1", port, "another client")):
            with pytest.raises(ConnectionResetError):
                await connection.request(LIST_GROUPS, ListGroupsRequest(states_filter=()))


async def test_a_broker_whose_port_is_in_use_does_not_start() -> None:
    async with Cluster.running(CONFIG) as running:
        port = running.nodes[1].port
        with pytest.raises(ExceptionGroup) as refused:
            async with Cluster.running(ClusterConfig(brokers=1, port=port)):
                pytest.fail("it has started")
    assert refused.group_contains(OSError, match=str(port))


@pytest.mark.parametrize(
    ("host", "advertised"), [("127.0.0.1", "broker.invalid"), ("0.0.0.0", "broker.invalid"), ("::1", "[::1]")]
)
async def test_clients_are_told_the_advertised_host_and_followers_need_not_reach_it(
    host: str, advertised: str
) -> None:
    config = replace(CONFIG, host=host, advertised_host=None if host == "::1" else advertised)
    async with running(config) as cluster:
        ports = [node.port for node in cluster.nodes.values()]
        assert cluster.bootstrap_servers == ",".join(f"{advertised}:{port}" for port in ports)
        appended = await cluster.nodes[state(cluster).leader].replicas.append(
            ProduceParams(ALL_ACKS), {EVENTS: WireRecordBatch.parse(wire_batch(b"x"))}
        )
    assert appended[EVENTS].error is ErrorCode.none


async def test_nothing_is_left_running_when_the_block_ends() -> None:
    tasks = anyio.get_running_tasks()
    async with Cluster.running(CONFIG):
        pass
    assert [task.name for task in anyio.get_running_tasks() if task not in tasks] == []


async def test_tables_are_printed_and_the_answer_to_an_invalid_command_names_the_fix() -> None:
    async with running() as cluster:
        assert all(command.meaning for command in COMMANDS.values())
        for line, text in (TABLES | MISTAKES).items():
            assert text in await printed(cluster, line)


async def test_typed_commands_inject_and_end_faults() -> None:
    async with running() as cluster:
        for command, status in (
            ("pause 3", "paused"),
            ("resume 3", "running"),
            ("cut-off 3", "cut off"),
            ("resume 3", "running"),
            ("slow-down 3 0.25", "slow"),
            ("resume 3", "running"),
        ):
            assert await printed(cluster, command) == "done\n"
            assert cluster.nodes[3].status == status
        assert await printed(cluster, "pause-follower 2") == "done\n"
        assert cluster.nodes[2].fetchers.paused
        assert await printed(cluster, "resume-follower 2") == "done\n"
        assert not cluster.nodes[2].fetchers.paused
        assert await printed(cluster, "kill 1") == await printed(cluster, "start 1") == "done\n"
        assert sorted(cluster.nodes) == [1, 2, 3]


async def test_a_stopped_broker_hands_over_until_an_election_gives_it_its_partitions_again() -> None:
    async with running() as cluster:
        preferred = state(cluster).leader
        await cluster.stop(preferred)
        assert preferred not in cluster.nodes
        assert state(cluster).leader not in (preferred, NO_LEADER), "it hands over its leaderships first"
        await cluster.start(preferred)
        await until_in_sync(cluster, preferred)
        assert await printed(cluster, "elect") == "partitions that have their preferred leader again: 1\n"
        assert state(cluster).leader == preferred


async def test_typed_lines_are_run_until_one_says_quit(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as cluster:
        reading, writing = os.pipe()
        with os.fdopen(reading) as stdin, os.fdopen(writing, "wb") as typist:
            monkeypatch.setattr(sys, "stdin", stdin)
            terminal = Terminal(file=StringIO())
            typist.write(b"pause-follower 1\n\nnonsense\nqu")
            typist.flush()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(Console(cluster, terminal).run)
                while not cluster.nodes[1].fetchers.paused:
                    await anyio.lowlevel.checkpoint()
                typist.write(b"it\n")
                typist.flush()
        assert isinstance(terminal.file, StringIO)
        assert "unknown command 'nonsense'" in terminal.file.getvalue()
