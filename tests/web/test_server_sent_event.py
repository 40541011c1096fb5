"""An event is encoded as the specification of server-sent events says."""

from __future__ import annotations

import pytest

from purgatory.web import ServerSentEvent


@pytest.mark.parametrize(
    ("event", "encoded"),
    [
        pytest.param(ServerSentEvent("7"), b"id: 7\n\n", id="no data"),
        pytest.param(ServerSentEvent("7", ""), b"id: 7\ndata: \n\n", id="empty data"),
        pytest.param(
            ServerSentEvent("7", "a\nb\r\nc\rd\n"),
            b"id: 7\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n",
            id="lines",
        ),
        pytest.param(ServerSentEvent("7", "x", "joined"), b"id: 7\nevent: joined\ndata: x\n\n", id="type"),
        pytest.param(ServerSentEvent("7", "x", ""), b"id: 7\nevent: \ndata: x\n\n", id="empty type"),
        pytest.param(ServerSentEvent("7", "\u2028é"), "id: 7\ndata: \u2028é\n\n".encode(), id="unicode"),
    ],
)
def test_an_event_has_a_line_for_each_field_and_each_line_of_its_data(
    event: ServerSentEvent, encoded: bytes
) -> None:
    assert event.encode() == encoded


@pytest.mark.parametrize("id", ["", "7\n", "7\r8", "\0"])
def test_an_id_that_clients_would_not_send_back_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="id of an event must be one line that is not empty"):
        ServerSentEvent(id, "data")


def test_a_type_of_two_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="type of an event must be one line"):
        ServerSentEvent("7", "data", "two\nlines")
