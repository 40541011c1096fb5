"""What the Java client makes of the answers. One process asks all, since its start takes seconds."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from tests.examples.broker.protocol.plain_messages import Plain
from tests.kafka.scenarios.brokers import Brokers
from tests.kafka.scenarios.scenario import scenario

PROGRAM: Final = Path(__file__).with_name("Answers.java")
# Seconds, with the compilation.
PATIENCE: Final = 110.0
ASKED: Final = (
    *("produce", "produce again", "produce too much", "produce to an illegal topic"),
    *("produce with the time of the append", "produce an old time", "produce with acks 0"),
    *("read", "read beyond the end", "offsets by time", "beginning", "end", "committed", "commit"),
    *("create what exists", "create what collides", "create with too many replicas", "create by default"),
    *("create with a wrong value", "create validated", "delete what is unknown", "add no partitions"),
    *("add a partition", "describe what is unknown", "describe", "settings", "settings of what is unknown"),
    *("alter", "alter an unknown setting", "append to a list", "delete records", "delete records beyond"),
    *("elect", "latest", "earliest", "max timestamp", "earliest local", "latest tiered", "producers"),
    *("cluster", "log directories", "describe an unknown group", "describe the group", "groups"),
    *("offsets of the group", "offsets of an unknown group", "alter offsets", "delete offsets"),
    *("delete offsets of an unknown group", "delete an unknown group", "delete the group"),
    *("remove members of an unknown group", "reassignments"),
)


@scenario(*ASKED)
def asked(brokers: Brokers, asked: str) -> Plain:
    answers = _answers(brokers.cluster.bootstrap_servers)
    assert set(answers) == set(ASKED)
    return answers[asked]


@cache
def _answers(servers: str) -> dict[str, Plain]:
    jars = Path(__file__).parents[3] / "build" / "kafka" / "*"
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", str(jars), str(PROGRAM), servers],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return dict(map(json.loads, done.stdout.splitlines()))
