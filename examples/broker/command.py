"""The command line of ``python -m examples.broker``."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from typing import Final

import anyio

from examples.arguments import number, whole
from examples.broker.cluster import Cluster, ClusterConfig
from examples.broker.console import Console, Terminal
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.group.coordinator import GroupConfig
from examples.broker.node.node import BrokerConfig, CannotListen
from examples.event_loop import run
from examples.first_error import first_error

FAILED: Final = 1
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
# A server that listens at one of these listens at all addresses of its machine.
_WILDCARDS: Final = ("", "0.0.0.0", "::")

_DESCRIPTION: Final = """\
Run a cluster of brokers in one process. They speak Kafka's protocol to any Kafka
client. Their logs are in memory. Type commands while they run: "help" lists them."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
      three brokers on ports 9092 to 9094
  %(prog)s --brokers 1 --port 0
      one broker at any free port; the first line of the output has the port
  %(prog)s --host 0.0.0.0 --advertised-host broker.example
      three brokers that clients on other machines reach by that name
  echo hello | kcat -b localhost:9092 -P -t greetings
  kcat -b localhost:9092 -C -t greetings -o beginning
      write and read with kcat; any other Kafka client works, too
  printf 'kill 2\\ntopics\\n' | %(prog)s
      read commands from a script; the brokers go on after the last one
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal or "quit", and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.port and options.port + options.brokers > 65_536:
        parser.error(
            f"--port {options.port}: {options.brokers} brokers need ports up to "
            f"{options.port + options.brokers - 1}, but the highest port is 65535"
        )
    if options.host in _WILDCARDS and options.advertised_host is None:
        parser.error(
            f"--host {options.host!r} is no address that a client can connect to; "
            "give --advertised-host, the name or address of this machine"
        )
    if options.advertised_host in _WILDCARDS:
        parser.error(f"--advertised-host {options.advertised_host!r}: no client can connect to that")
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=options.log_level.upper(), stream=sys.stderr
    )
    config = ClusterConfig(
        brokers=options.brokers,
        host=options.host,
        port=options.port,
        advertised_host=options.advertised_host,
        defaults=ClusterDefaults(
            num_partitions=options.partitions,
            default_replication_factor=min(options.replication_factor, options.brokers),
            broker_session_timeout=options.broker_session_timeout,
        ),
        broker=BrokerConfig(
            # Several in one session timeout, so that one late heartbeat does not fence the broker.
            broker_heartbeat_interval=options.broker_session_timeout / 4,
            groups=GroupConfig(
                group_initial_rebalance_delay=options.group_initial_rebalance_delay,
                group_min_session_timeout=options.group_min_session_timeout,
            ),
        ),
    )
    status = 0
    try:
        run(lambda: _serve(config))
    except* CannotListen as errors:
        print(first_error(errors), file=sys.stderr)
        status = FAILED
    return status


async def _serve(config: ClusterConfig) -> None:
    terminal = Terminal()
    async with Cluster.running(config) as cluster:
        # One line for scripts, in the form of a client's setting.
        terminal.print(f"bootstrap.servers={cluster.bootstrap_servers}", soft_wrap=True, highlight=False)
        if sys.stdin.isatty():
            terminal.print('Type a command ("help" lists them). Ctrl-C stops the brokers.')
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_wait_for_signal, tasks.cancel_scope)
            if await Console(cluster, terminal).run():
                tasks.cancel_scope.cancel()
        terminal.print("stopping: answering the pending requests")


async def _wait_for_signal(stop: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            stop.cancel()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.broker",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole(parser.add_argument, "--brokers", 3, "number of brokers")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)")
    parser.add_argument(
        "--advertised-host",
        metavar="NAME",
        help="name or address that clients are told to connect to (default: --host)",
    )
    what = "port of the first broker; the others take the next ones; 0 means any free ports"
    whole(parser.add_argument, "--port", 9092, what, least=0)
    parser.add_argument(
        "--log-level",
        choices=LOG_LEVELS,
        default="info",
        help="least severe messages to print on stderr (default: info)",
    )
    topics = parser.add_argument_group("defaults of new topics")
    whole(topics.add_argument, "--partitions", 3, "number of partitions")
    what = "replicas of each partition, at most one on each broker"
    whole(topics.add_argument, "--replication-factor", 3, what)
    times = parser.add_argument_group("times in seconds, with Kafka's names and defaults")
    what = "a broker without a heartbeat for this long is fenced and leads nothing"
    number(times.add_argument, "--broker-session-timeout", 9, what, above=0)
    what = "time for which a new group waits for more members"
    number(times.add_argument, "--group-initial-rebalance-delay", 3, what, least=0)
    what = "shortest session timeout that a group member may request"
    number(times.add_argument, "--group-min-session-timeout", 6, what, least=0)
    return parser
