"""A file system that is really full."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.broker.live.brokers_process import (
    PARTITIONS,
    TOPIC,
    BrokersProcess,
    create_topic,
    stored_faults,
)
from tests.examples.broker.live.idempotent_writers import ConfluentWriter

pytestmark = [pytest.mark.real_time, pytest.mark.long]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_what_is_acknowledged_before_and_after_the_disk_is_full_survives_a_kill(
    small_disk: Path, tmp_path: Path
) -> None:
    data, log = small_disk / "data", tmp_path / "log"
    brokers = BrokersProcess(data, log)
    with brokers.running():
        create_topic(brokers.bootstrap_servers)
        with ConfluentWriter.running(brokers.bootstrap_servers, TOPIC) as writer:
            while "No space left on device" not in log.read_text():
                writer.send(writer.sent % PARTITIONS, writer.sent)
            before = len(writer)
            subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
            for _ in range(1000):
                writer.send(writer.sent % PARTITIONS, writer.sent)
            writer.flush()
    assert 0 < before <= len(writer) - 1000
    assert not (faults := stored_faults(data, writer)), "\n".join(faults[:20])
