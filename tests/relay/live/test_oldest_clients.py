"""The oldest clients that pyproject.toml allows. All other tests have the newest ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def oldest(client: str) -> str:
    """The requirement of the oldest version of a client."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (bound,) = {
        required
        for requirements in extras.values()
        for required in requirements
        if required.startswith(f"{client}>=")
    }
    return re.sub(">=", "==", bound)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "server"), [("redis", "redis"), ("asyncpg", "postgres"), ("nats-py", "nats")]
)
def test_the_oldest_client_connects_and_signals_in_each_way(client: str, server: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
    command += ["--python", sys.executable, "--target", str(tmp_path), oldest(client)]
    if subprocess.run(command, check=False).returncode:
        if "CI" in os.environ:
            pytest.fail(f"CI has to be able to install {oldest(client)}")
        pytest.skip(f"{oldest(client)} cannot be installed here")
    # The first directory that has a package wins.
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    module = client.removesuffix("-py")
    where = [sys.executable, "-c", f"import {module}; print({module}.__file__)"]
    assert subprocess.check_output(where, env=environment, text=True).startswith(str(tmp_path))
    here = Path(__file__).parent
    tests = [here / f"test_{server}.py", here / f"test_{server}_connections.py"]
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-m", "slow and not long", *map(str, tests)),
        ],
        check=True,
        cwd=ROOT,
        env=environment,
    )
