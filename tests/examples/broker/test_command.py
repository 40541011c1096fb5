"""``python -m examples.broker`` with options that it cannot use."""

import socket

import pytest

from examples.broker.command import main


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_a_wildcard_needs_an_address_that_clients_can_connect_to(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--host", host])
    assert "give --advertised-host" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--advertised-host", host])
    assert "no client can connect to that" in capsys.readouterr().err


def test_a_port_that_is_in_use_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert main(["--brokers", "1", "--port", str(port)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"broker 1 cannot listen at 127.0.0.1:{port}: ")
    assert error.endswith("; choose another --port\n")


def test_a_host_that_is_not_of_this_machine_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    # An address for documentation (RFC 5737).
    assert main(["--host", "192.0.2.1", "--port", "0"]) == 1
    assert capsys.readouterr().err.endswith("; choose another --host\n")


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert (
        "python -m examples.broker --brokers 1 --port 0" in capsys.readouterr().out.partition("examples:")[2]
    )
