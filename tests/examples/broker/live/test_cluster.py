"""Brokers that are started, stopped, killed and paused, by call and by typed command."""

import os
import sys
from collections.abc import AsyncIterator
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
from examples.broker.metadata import NO_LEADER
from examples.broker.node.node import BrokerConfig
from examples.broker.protocol.apis import LIST_GROUPS
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.requests import ALL_ACKS, ProduceParams
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

SESSION_TIMEOUT = 0.5
CONFIG = ClusterConfig(
    brokers=3,
    port=0,
    defaults=ClusterDefaults(default_replication_factor=3, broker_session_timeout=SESSION_TIMEOUT),
    broker=BrokerConfig(broker_heartbeat_interval=0.1),
)
EVENTS = TopicPartition("events", 0)


@asynccontextmanager
async def running(config: ClusterConfig = CONFIG) -> AsyncIterator[Cluster]:
    """A running cluster.

    It is no fixture: a fixture ends in another task than it began, a task group must not.
    """
    with anyio.fail_after(60):
        async with Cluster.running(config) as cluster:
            for node in cluster.nodes.values():
                await node.admin.auto_create(["events"])
            yield cluster


def leader(cluster: Cluster) -> int:
    state = cluster.controller.image.partition(EVENTS)
    assert state is not None
    return state.leader


async def until_leader_is_other_than(cluster: Cluster, broker_id: int) -> int:
    while leader(cluster) in (broker_id, NO_LEADER):
        await cluster.controller.image_after(cluster.controller.image.version)
    return leader(cluster)


async def printed(cluster: Cluster, line: str) -> str:
    terminal = Terminal(file=StringIO(), width=120)
    terminal.print(await Console(cluster, terminal).answer(line.split()))
    assert isinstance(terminal.file, StringIO)
    return terminal.file.getvalue()


async def test_a_killed_broker_leads_nothing_after_its_session_timeout() -> None:
    async with running() as cluster:
        killed = leader(cluster)
        await cluster.kill(killed)
        assert killed not in cluster.nodes
        # No more heartbeats come, so this deadline is final.
        (session,) = cluster.controller.session_purgatory.operations(killed)
        await until_leader_is_other_than(cluster, killed)
        assert session.expired
        assert session.deadline is not None
        assert anyio.current_time() >= session.deadline


async def test_a_stopped_broker_hands_over_its_leaderships_first() -> None:
    async with running() as cluster:
        stopped = leader(cluster)
        await cluster.stop(stopped)
        assert leader(cluster) not in (stopped, NO_LEADER)
        assert stopped not in cluster.nodes


async def test_a_restarted_broker_has_its_port_and_logs_and_rejoins_the_in_sync_replicas() -> None:
    async with running() as cluster:
        broker_id = leader(cluster)
        port = cluster.nodes[broker_id].port
        log = cluster.nodes[broker_id].replicas.partitions.leader(EVENTS).log
        await cluster.kill(broker_id)
        await until_leader_is_other_than(cluster, broker_id)
        await cluster.start(broker_id)
        assert cluster.nodes[broker_id].port == port
        restored = cluster.nodes[broker_id].replicas.partitions.get(EVENTS)
        assert restored is not None
        assert restored.log is log
        while broker_id not in cluster.controller.image.topics["events"].partitions[0].in_sync:
            await cluster.controller.image_after(cluster.controller.image.version)


async def test_a_paused_broker_is_fenced_and_follows_when_it_resumes() -> None:
    async with running() as cluster:
        paused = leader(cluster)
        cluster.pause(paused)
        await until_leader_is_other_than(cluster, paused)
        cluster.resume(paused)
        while paused not in cluster.controller.image.topics["events"].partitions[0].in_sync:
            await cluster.controller.image_after(cluster.controller.image.version)
        assert leader(cluster) != paused


async def test_a_broker_that_is_cut_off_loses_its_leaderships_and_follows_when_it_resumes() -> None:
    async with running() as cluster:
        lost = leader(cluster)
        client = await PeerConnection.open("127.0.0.1", cluster.nodes[lost].port, "client")
        cluster.cut_off(lost)
        for connection in (
            client,
            await PeerConnection.open("127.0.0.1", cluster.nodes[lost].port, "another client"),
        ):
            with pytest.raises(ConnectionResetError):
                await connection.request(LIST_GROUPS, ListGroupsRequest(states_filter=()))
        await until_leader_is_other_than(cluster, lost)
        cluster.resume(lost)
        while lost not in cluster.controller.image.topics["events"].partitions[0].in_sync:
            await cluster.controller.image_after(cluster.controller.image.version)
        assert leader(cluster) != lost


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
        appended = await cluster.nodes[leader(cluster)].replicas.append(
            ProduceParams(ALL_ACKS), {EVENTS: WireRecordBatch.parse(wire_batch(b"x"))}
        )
    assert appended[EVENTS].error is ErrorCode.none


async def test_nothing_is_left_running_when_the_block_ends() -> None:
    tasks = anyio.get_running_tasks()
    async with Cluster.running(CONFIG):
        pass
    assert [task.name for task in anyio.get_running_tasks() if task not in tasks] == []


@pytest.mark.parametrize("line", ["brokers", "topics", "purgatories", "help"])
async def test_tables_are_printed(line: str) -> None:
    async with running() as cluster:
        expected = {
            "brokers": f"127.0.0.1:{cluster.nodes[2].port}",
            "topics": "events-0",
            "purgatories": "delete records",
            "help": "pause-follower BROKER",
        }
        assert expected[line] in await printed(cluster, line)


async def test_typed_commands_inject_and_end_faults() -> None:
    async with running() as cluster:
        assert await printed(cluster, "pause-follower 2") == "done\n"
        assert cluster.nodes[2].fetchers.paused
        assert await printed(cluster, "resume-follower 2") == "done\n"
        assert not cluster.nodes[2].fetchers.paused
        assert await printed(cluster, "pause 3") == "done\n"
        assert cluster.nodes[3].status == "paused"
        assert await printed(cluster, "resume 3") == "done\n"
        assert cluster.nodes[3].status == "running"
        assert await printed(cluster, "cut-off 2") == "done\n"
        assert cluster.nodes[2].status == "cut off"
        assert await printed(cluster, "slow-down 3 0.25") == "done\n"
        assert cluster.nodes[3].status == "slow"
        assert await printed(cluster, "resume 2") == await printed(cluster, "resume 3") == "done\n"
        assert {node.status for node in cluster.nodes.values()} == {"running"}
        assert await printed(cluster, "kill 1") == "done\n"
        assert await printed(cluster, "start 1") == "done\n"
        assert sorted(cluster.nodes) == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("explode", "unknown command 'explode'"),
        ("kill", "usage: kill BROKER"),
        ("kill 1 2", "usage: kill BROKER"),
        ("topics 1", "usage: topics"),
        ("kill one", "'one' is not the number of a broker"),
        ("slow-down 1", "usage: slow-down BROKER SECONDS"),
        ("slow-down 1 much", "'much' is not a number of seconds"),
        ("slow-down 1 -1", "a request cannot wait -1 seconds; choose 0 or more"),
        ("slow-down 1 nan", "a request cannot wait nan seconds; choose 0 or more"),
        ("kill 9", "broker 9 is not running"),
        ("start 2", "broker 2 cannot be started"),
    ],
)
async def test_the_answer_to_an_invalid_command_names_the_fix(line: str, message: str) -> None:
    async with running() as cluster:
        assert message in await printed(cluster, line)


async def test_an_election_gives_every_partition_its_preferred_leader() -> None:
    async with running() as cluster:
        preferred = leader(cluster)
        await cluster.stop(preferred)
        await cluster.start(preferred)
        while preferred not in cluster.controller.image.topics["events"].partitions[0].in_sync:
            await cluster.controller.image_after(cluster.controller.image.version)
        assert await printed(cluster, "elect") == "partitions that have their preferred leader again: 1\n"
        assert leader(cluster) == preferred


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


def test_every_command_has_a_help_text() -> None:
    assert all(command.meaning for command in COMMANDS.values())
