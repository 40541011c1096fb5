"""Impossible options are refused in one sentence, which names the option to change."""

from __future__ import annotations

import pytest

from examples.longpoll.command import main
from examples.longpoll.limits import Limits


@pytest.mark.parametrize("host", ["nosuch.invalid", "192.0.2.1"])
def test_a_host_that_is_not_an_address_of_this_machine_is_refused(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--host", host, "--port", "0"]) == 1
    assert capsys.readouterr().err.endswith("choose another --host\n")


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit, match="2"):
        # If the arguments were accepted, this host would still keep the service from starting.
        main([*arguments, "--host", "192.0.2.1"])
    return capsys.readouterr().err.splitlines()[-1]


def test_a_port_beyond_65535_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(["--port", "65536"], capsys).endswith("--port: must be 65535 or less, not 65536")


@pytest.mark.parametrize(
    "arguments", [["--max-pending", "10000"], ["--max-connections", "5"], ["--max-pending", "20000"]]
)
def test_as_many_polls_as_connections_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(arguments, capsys)
    assert "pending polls would occupy all of the" in message
    assert message.endswith("choose a lower --max-pending or a higher --max-connections")


def test_the_help_shows_how_to_append_and_to_read(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    printed = capsys.readouterr().out
    assert "curl -d" in printed
    assert "&wait=20" in printed


def test_the_longest_wait_is_shorter_than_the_default_timeouts_of_proxies() -> None:
    # HAProxy's configurations often have 30 seconds; nginx and Amazon's load balancers have 60.
    assert Limits().wait <= 25


def test_several_workers_without_a_store_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(["--workers", "2"], capsys).endswith(
        "more than one needs --redis or --postgres, which they share"
    )


def test_the_ports_of_the_workers_have_to_exist(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--port", "65534", "--workers", "2", "--redis", "redis://localhost"]
    assert refusal(arguments, capsys).endswith("--port: must be 65535 or less, not 65536")


def test_a_url_of_redis_has_to_be_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "argument --redis: Redis URL must specify" in refusal(["--redis", "localhost"], capsys)
