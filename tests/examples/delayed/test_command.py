"""``python -m examples.delayed``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.delayed.command import main
from examples.delayed.settings import Settings

ROOT = Path(__file__).parents[3]
SERVE = ["serve", "--bootstrap", "127.0.0.1:1", "--design"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*SERVE, "wheel"], "choose a --directory"),
        ([*SERVE, "sleep"], "invalid choice"),
        ([*SERVE, "levels", "--levels", "1,x"], "numbers of seconds above 0"),
        ([*SERVE, "levels", "--levels", "1,-1"], "numbers of seconds above 0"),
        ([*SERVE, "levels", "--levels", "1,1"], "numbers of seconds above 0"),
        ([*SERVE, "levels", "--levels", "0.0001"], "numbers of seconds above 0"),
        ([*SERVE, "levels", "--levels", "nan"], "numbers of seconds above 0"),
        ([*SERVE, "levels", "--topic", "a b"], "no topic of the name 'a b'"),
        ([*SERVE, "levels", "--session-timeout", "1"], "2 or more"),
        (["serve", "--design", "levels"], "--bootstrap"),
        (["demo", "--messages", "0"], "1 or more"),
        ([], "COMMAND"),
    ],
)
def test_wrong_arguments_end_it_with_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_the_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert f"python -m examples.delayed {command}" in capsys.readouterr().out.partition("examples:")[2]


def test_without_a_broker_it_ends_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SERVE, "requeue"]) == 1
    printed = capsys.readouterr().err
    assert "Unable to bootstrap from [('127.0.0.1', 1" in printed
    assert "start the brokers, or give the right --bootstrap" in printed


@pytest.mark.slow
def test_a_session_timeout_that_the_brokers_refuse_ends_it_with_a_message(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bootstrap", settings.bootstrap, "--topic", settings.topics.requests]
    assert main(["serve", "--design", "requeue", *arguments, "--session-timeout", "2000"]) == 1
    assert "InvalidSessionTimeoutError; give a --session-timeout that the brokers allow" in (
        capsys.readouterr().err
    )


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.parametrize("design", ["requeue", "wheel"])
def test_the_demo_checks_itself_and_leaves_nothing(tmp_path: Path, design: str) -> None:
    command = [
        *(sys.executable, "-m", "examples.delayed", "demo", "--design", design),
        *("--messages", "200", "--seconds", "0.5", "--longest", "1"),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
    killed = "[abc]" if design == "wheel" else "-"
    assert re.search(rf"{design} +200 +\d+ +\d+ .* {killed} +passed", done.stdout), done.stdout
