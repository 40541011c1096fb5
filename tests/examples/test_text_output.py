"""Displays on terminals whose encoding lacks their characters."""

import io
import os
import subprocess
import sys

import pytest

from examples.text_output import print_anywhere


@pytest.mark.parametrize(
    ("encoding", "shown"), [("latin-1", "v ._#  3 ·"), ("ascii", "v ._#  3 ."), ("utf-8", "✓ ▁▂█  3 ·")]
)
def test_a_character_that_the_encoding_lacks_is_written_in_ascii(encoding: str, shown: str) -> None:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding)
    print_anywhere(stream)
    stream.write("✓ ▁▂█  3 ·")
    stream.flush()
    assert buffer.getvalue().decode(encoding) == shown


def test_a_stream_without_an_encoding_of_its_own_is_left_alone() -> None:
    stream = io.StringIO()
    print_anywhere(stream)
    stream.write("✓")
    assert stream.getvalue() == "✓"


@pytest.mark.slow
@pytest.mark.real_time
def test_the_demo_runs_to_its_end_on_a_terminal_of_latin_1() -> None:
    command = [sys.executable, "-m", "examples.broker.simulator", "--duration", "0.5", "--rate", "1000"]
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "latin-1",
        "TERM": "dumb",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"v every acknowledged record was consumed once, in order" in done.stdout
