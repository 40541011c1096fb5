"""Standard output that is a pipe."""

import os
import sys

import pytest
from rich.table import Table

from examples.broker.console import Terminal


def test_a_table_is_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("topic", "replicas")
    table.add_row("t" * 249, " ".join(map(str, range(100))))
    Terminal().print(table)
    assert "t" * 249 + " │ " + " ".join(map(str, range(100))) in capsys.readouterr().out


def test_text_that_looks_like_markup_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().print("[bold]:smile: 'x'")
    assert capsys.readouterr().out == "[bold]:smile: 'x'\n"


def test_nobody_reading_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        terminal = Terminal()
        os.close(reading)
        terminal.print("to nobody")
        terminal.print("to nobody")
        # As the interpreter does when it ends.
        stdout.write("the rest")
