"""Commands that are typed while the brokers run: they inject faults and print tables on the terminal."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

import anyio
import rich.console
from rich.console import RenderableType
from rich.table import Table

from examples.broker.cluster import Cluster
from examples.broker.controller.election import ElectionType
from examples.broker.metadata import NO_LEADER, PartitionState, address

Outcome = RenderableType | None

# Characters in a line where nobody sees its end.
_UNLIMITED: Final = 10_000
# The columns of the table of purgatories.
COUNTS: Final = ("pending", "keys", "completed", "expired", "cancelled", "failed", "wakeups")


class Terminal(rich.console.Console):
    """Writes whole lines into a pipe or a file, and goes on when nobody reads them any more.

    The brokers serve clients, so they must not end with the reader of a pipe, such as ``head -1``.
    """

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)
        if not self.is_terminal:
            self.width = _UNLIMITED

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # Python flushes standard output when it ends, which must not fail, either.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


@dataclass(frozen=True, slots=True)
class Command:
    """What a command runs with the cluster and its parameters, and its line in the help.

    The parameters are the name of each in the help, and the function that reads it.
    """

    run: Callable[..., Outcome | Awaitable[None]]
    meaning: str
    parameters: Mapping[str, Callable[[str], float]] = field(default_factory=dict)


BROKER: Final = {"BROKER": int}
BROKER_AND_SECONDS: Final = {"BROKER": int, "SECONDS": float}


class Console:
    """Reads commands line by line and runs them on the cluster, until ``quit`` or the end of the input.

    The answer to an invalid command names the fix.
    """

    def __init__(self, cluster: Cluster, terminal: rich.console.Console) -> None:
        self._cluster = cluster
        self._terminal = terminal

    async def run(self) -> bool:
        """Return True after ``quit``; False at the end of the input, or at once when the input is a file."""
        descriptor = sys.stdin.fileno()
        unfinished = b""
        while True:
            try:
                await anyio.wait_readable(descriptor)
            except PermissionError:
                return False
            # The input is readable, so this read returns at once. The descriptor stays in blocking mode,
            # since other processes on this terminal share that mode.
            typed = os.read(descriptor, 4096)
            if not typed:
                return False
            *lines, unfinished = (unfinished + typed).split(b"\n")
            for line in lines:
                words = line.decode(errors="replace").split()
                if words in (["quit"], ["exit"]):
                    return True
                if words:
                    self._terminal.print(await self.answer(words))

    async def answer(self, words: list[str]) -> RenderableType:
        """Run one command, and return a line or a table to print."""
        name, *arguments = words
        command = COMMANDS.get(name)
        if command is None:
            return f"unknown command {name!r}; help lists the commands"
        if len(arguments) != len(command.parameters):
            return f"usage: {_usage(name, command)}"
        try:
            parameters = zip(command.parameters.values(), arguments, strict=True)
            values = [parse(argument) for parse, argument in parameters]
        except ValueError:
            return f"each parameter is a number; usage: {_usage(name, command)}"
        try:
            outcome = command.run(self._cluster, *values)
            if isinstance(outcome, Awaitable):
                await outcome
                return "done"
            return outcome or "done"
        except ValueError as error:
            return str(error)


def _usage(name: str, command: Command) -> str:
    return " ".join([name, *command.parameters])


def _help(_cluster: Cluster) -> Outcome:
    table = Table("command", "meaning", box=None)
    for name, command in COMMANDS.items():
        table.add_row(_usage(name, command), command.meaning)
    table.add_row("quit", "stop all brokers cleanly, and end")
    return table


def _brokers(cluster: Cluster) -> Outcome:
    image = cluster.controller.image
    table = Table("broker", "address", "state", "leads", "in sync", "fetches from")
    for broker_id in cluster.broker_ids:
        registration = image.brokers.get(broker_id)
        node = cluster.nodes.get(broker_id)
        states = [state for _, state in image.partitions()]
        table.add_row(
            str(broker_id),
            address(registration.host, registration.port) if registration else "",
            "stopped" if node is None else node.status,
            str(sum(state.leader == broker_id for state in states)),
            str(sum(broker_id in state.in_sync for state in states)),
            "" if node is None else "nothing" if node.fetchers.paused else "its leaders",
        )
    return table


def _topics(cluster: Cluster) -> Outcome:
    table = Table("partition", "leader", "epoch", "in sync", "replicas")
    for topic_partition, state in cluster.controller.image.partitions():
        table.add_row(
            str(topic_partition),
            "none" if state.leader == NO_LEADER else str(state.leader),
            str(state.leader_epoch),
            " ".join(map(str, state.in_sync)),
            " ".join(map(str, state.replicas)),
        )
    return table


def _purgatories(cluster: Cluster) -> Outcome:
    table = Table("broker", "purgatory")
    for heading in COUNTS:
        table.add_column(heading, justify="right")
    for broker_id, purgatories in cluster.statistics().items():
        for name, statistics in purgatories.items():
            counts = asdict(statistics)
            table.add_row(str(broker_id), name, *(f"{counts[heading]:,}" for heading in COUNTS))
    return table


def _elect(cluster: Cluster) -> Outcome:
    outcomes = cluster.controller.elect_leaders(ElectionType.PREFERRED, None)
    elected = sum(isinstance(outcome, PartitionState) for outcome in outcomes.values())
    return f"partitions that have their preferred leader again: {elected}"


COMMANDS: Final[Mapping[str, Command]] = {
    "brokers": Command(_brokers, "list the brokers, and how many partitions each one leads"),
    "topics": Command(_topics, "list the partitions with their leader, in-sync replicas and replicas"),
    "purgatories": Command(_purgatories, "list the purgatories with their pending and finished operations"),
    "kill": Command(Cluster.kill, "end a broker as SIGKILL does; its logs stay", BROKER),
    "stop": Command(Cluster.stop, "stop a broker cleanly", BROKER),
    "start": Command(Cluster.start, "start a broker that was killed or stopped", BROKER),
    "pause": Command(Cluster.pause, "let a broker hang, as SIGSTOP does", BROKER),
    "cut-off": Command(Cluster.cut_off, "break a broker's connections, and each new one", BROKER),
    "slow-down": Command(Cluster.slow_down, "let each request to a broker wait", BROKER_AND_SECONDS),
    "resume": Command(Cluster.resume, "end the faults of a running broker", BROKER),
    "pause-follower": Command(Cluster.pause_follower, "stop a broker's replication; it serves on", BROKER),
    "resume-follower": Command(Cluster.resume_follower, "start a broker's replication again", BROKER),
    "elect": Command(_elect, "elect the preferred leader of every partition where it is in sync"),
    "help": Command(_help, "print this list"),
}
