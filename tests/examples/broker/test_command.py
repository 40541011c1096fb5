"""``python -m examples.broker`` with an address or a directory that it cannot use."""

import socket
from pathlib import Path
from uuid import UUID

import pytest

from examples.broker.command import main
from examples.broker.controller.stored_metadata import StoredMetadata
from examples.broker.metadata import PartitionState, TopicImage
from examples.broker.storage.data_directory import locked


def refusal(directory: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["--port", "0", "--data", str(directory), *options]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_directory_that_another_process_uses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(tmp_path):
        assert refusal(tmp_path, capsys) == (
            f"another process uses {tmp_path}; stop it, or choose another --data\n"
        )


def test_a_directory_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "holiday.jpg").write_text("")
    assert "holiday.jpg; choose an empty --data" in refusal(tmp_path, capsys)


def test_a_directory_of_more_brokers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = PartitionState((3, 1), (3, 1), leader=3)
    StoredMetadata(tmp_path).put_topics({"events": TopicImage("events", UUID(int=1), (state,))})
    assert refusal(tmp_path, capsys, "--brokers", "2") == (
        f"{tmp_path} has replicas of broker 3; start with --brokers 3\n"
    )


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


@pytest.mark.parametrize(
    ("brokers", "replication_factor", "replicas"), [("3", "3", 3), ("2", "3", 2), ("3", "1", 1)]
)
def test_more_in_sync_replicas_than_a_topic_has_are_warned_of(
    brokers: str, replication_factor: str, replicas: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings(min_insync_replicas: int) -> list[str]:
        caplog.clear()
        options = ["--brokers", brokers, "--replication-factor", replication_factor]
        options += ["--min-insync-replicas", str(min_insync_replicas)]
        # The directory is in use, so the brokers do not start.
        with locked(tmp_path):
            assert main(["--port", "0", "--data", str(tmp_path), *options]) == 1
        return [record.message for record in caplog.records]

    assert warnings(replicas) == []
    assert warnings(replicas + 1) == [
        f"--min-insync-replicas {replicas + 1}: new topics have {replicas} replicas by default, so they "
        f"refuse each write with acks=all; give at most {replicas}, or raise --replication-factor "
        "and --brokers"
    ]


def test_the_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "python -m examples.broker --data DIR" in capsys.readouterr().out.partition("examples:")[2]
