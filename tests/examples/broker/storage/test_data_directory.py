"""One process at a time uses a data directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.broker.storage.data_directory import UnusableDirectory, locked


def test_a_directory_is_made_and_locked_while_it_is_used(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    with (
        locked(directory),
        pytest.raises(UnusableDirectory, match=r"another process uses .*b; stop it"),
        locked(directory),
    ):
        pytest.fail("it was locked twice")
    with locked(directory):
        pass


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = f"""\
import os
from pathlib import Path
from examples.broker.storage.data_directory import locked
with locked(Path({str(tmp_path)!r})):
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[4])
    with locked(tmp_path):
        pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnusableDirectory, match=r"file.*choose another --data"), locked(tmp_path / "file"):
        pytest.fail("a file is no directory")
