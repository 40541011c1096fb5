"""What cannot be served is refused in a sentence that says what to choose instead."""

from __future__ import annotations

import pytest

from examples.longpoll.command import main


@pytest.mark.parametrize("host", ["nosuch.invalid", "192.0.2.1"])
def test_a_host_that_is_not_here_is_said(host: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--host", host, "--port", "0"]) == 1
    assert capsys.readouterr().err.endswith("choose another --host\n")


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="2"):
        # Nothing would be served there if it were not.
        main([*arguments, "--host", "192.0.2.1"])
    return capsys.readouterr().err.splitlines()[-1]


def test_ports_end_at_65535(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(["--port", "65536"], capsys).endswith("--port: must be 65535 or less, not 65536")


@pytest.mark.parametrize(
    "arguments", [["--max-pending", "10000"], ["--max-connections", "5"], ["--max-pending", "20000"]]
)
def test_some_connections_have_to_be_left_by_polls(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(arguments, capsys)
    assert "polls would leave none of" in said
    assert said.endswith("choose a lower --max-pending, or a higher --max-connections")
