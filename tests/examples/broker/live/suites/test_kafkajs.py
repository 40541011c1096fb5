"""What users of kafkajs do, against these brokers. Its package from npm has no tests of its own."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.examples.broker.live.clients.missing_dependency import skip_for_missing
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.live.suites.librdkafka_suite import REPOSITORY

pytestmark = [pytest.mark.real_time, pytest.mark.long, pytest.mark.timeout(300)]

VERSION: Final = "2.2.4"
PREFIX: Final = REPOSITORY / "build" / "kafkajs"
CASES: Final = Path(__file__).with_name("kafkajs_cases.js")
NAMES: Final = re.findall(r"^  async '(.*)'\(.*\) \{$", CASES.read_text(), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def modules() -> Path:
    """The directory of the packages of Node.js, with kafkajs, which is installed once."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            skip_for_missing(f"{program} is not installed")
    found = PREFIX / "node_modules"
    if not (found / "kafkajs").exists():
        command = ["npm", "install", "--prefix", str(PREFIX), "--no-audit", "--no-fund", f"kafkajs@{VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            skip_for_missing(f"npm cannot install kafkajs: {done.stderr[-2000:]}")
    return found


@pytest.fixture(scope="module")
def brokers() -> Iterator[LiveCluster]:
    with LiveCluster.running(CONFIG) as cluster:
        yield cluster


@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_kafkajs(modules: Path, brokers: LiveCluster, name: str) -> None:
    done = subprocess.run(
        ["node", str(CASES), brokers.bootstrap_servers, name],
        env={**os.environ, "NODE_PATH": str(modules)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
