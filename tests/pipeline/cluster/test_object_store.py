"""The workers of a cluster read and write an object store, with the keys that are in their environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from purgatory.journal.schema import CHECKS
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.schemas import CHECKS_TABLE, OPERATIONS_TABLE
from tests.pipeline.cluster.standalone import standalone
from tests.pipeline.journals import ROWS, add_segment, operation
from tests.pipeline.object_store import KEY, SECRET, contents, ship
from tests.pipeline.settings import SETTINGS

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {**SETTINGS, "spark.executor.memory": "512m"}
    return subprocess.run(
        [
            *(sys.executable, "-m", "purgatory.pipeline", *arguments, "--memory", "1g"),
            *(f"--conf={name}={value}" for name, value in settings.items()),
        ],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_on_a_cluster_use_the_store_and_nobody_sees_the_key(
    bucket: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for number in range(4):
        add_segment(tmp_path, f"{number}", [operation(number)])
        add_segment(tmp_path, f"{number}", [ROWS[CHECKS]] * (number + 1), table=CHECKS)
    ship(tmp_path, f"{bucket}/journal")
    dataset = Dataset(f"{bucket}/dataset")
    daemons, events = (tmp_path_factory.mktemp(name) for name in ("daemons", "events"))
    with standalone(daemons) as cluster:
        log = {"enabled": "true", "dir": events.as_uri(), "compress": "false", "rolling.enabled": "false"}
        settings = [f"--conf=spark.eventLog.{name}={value}" for name, value in log.items()]
        on_it = ("--master", cluster.url, *settings)
        runs = [
            run("compact", f"{bucket}/journal", dataset.root, *on_it),
            run("summarize", dataset.root, *on_it),
            run("advise", dataset.root, *on_it),
        ]
    assert [each.returncode for each in runs] == [0, 0, 0], [each.stderr for each in runs]
    assert "checks: 4 new files, 10 rows = 10 kept" in runs[0].stdout
    assert f"{dataset.root}/summary/minutes: 1 row\n" in runs[1].stdout
    paths = [path for folder in (daemons, events) for path in folder.rglob("*") if path.is_file()]
    written = {str(path): path.read_bytes() for path in paths}
    assert any("SparkListenerTaskEnd" in content.decode(errors="replace") for content in written.values())
    written |= contents(bucket)
    written |= {f"output {number}": (each.stdout + each.stderr).encode() for number, each in enumerate(runs)}
    for secret in (SECRET, KEY):
        assert [name for name, content in written.items() if secret.encode() in content] == []


def test_a_worker_without_a_key_is_an_error_of_one_line(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    add_segment(tmp_path, "one", [operation()])
    ship(tmp_path, f"{bucket}/journal")
    here = {name: os.environ[name] for name in VARIABLES}
    for name in VARIABLES:
        monkeypatch.delenv(name)
    # A worker finds no store, as if it were in a network without one.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with standalone(tmp_path_factory.mktemp("daemons")) as cluster:
        for name, value in here.items():
            monkeypatch.setenv(name, value)
        done = run("compact", f"{bucket}/journal", f"{bucket}/dataset", "--master", cluster.url)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("purgatory-pipeline: ")]
    assert line.endswith("the object store does not answer; check the network and AWS_ENDPOINT_URL")
    assert Dataset(f"{bucket}/dataset").table(OPERATIONS_TABLE).paths() == []
    assert Dataset(f"{bucket}/dataset").table(CHECKS_TABLE).paths() == []
