"""An event is encoded as the specification of server-sent events says."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

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
        pytest.param(ServerSentEvent("7", retry=2.5), b"id: 7\nretry: 2500\n\n", id="retry"),
        pytest.param(
            ServerSentEvent("7", "x", "joined", 0), b"id: 7\nevent: joined\nretry: 0\ndata: x\n\n", id="all"
        ),
        pytest.param(ServerSentEvent("7", "\u2028é"), "id: 7\ndata: \u2028é\n\n".encode(), id="unicode"),
    ],
)
def test_an_event_has_a_line_for_each_field_and_each_line_of_its_data(
    event: ServerSentEvent, encoded: bytes
) -> None:
    assert event.encode() == encoded


@pytest.mark.parametrize("id", ["", "7\n", "7\r8", "\0", " ", " 7", "7 ", "a\tb", "a\fb", "a\x7f"])
def test_an_id_that_clients_would_not_send_back_is_refused(id: str) -> None:
    with pytest.raises(ValueError, match="id of an event must be text without control characters"):
        ServerSentEvent(id, "data")


@pytest.mark.parametrize("id", ["7", "a b", "d0390cc6:7", "\u00e9\u0085\u2028"])
def test_an_id_that_clients_send_back_is_taken(id: str) -> None:
    assert ServerSentEvent(id).encode() == f"id: {id}\n\n".encode()


def test_a_type_of_two_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="type of an event must be one line"):
        ServerSentEvent("7", "data", "two\nlines")


HALF = "\N{GRINNING FACE}".encode("utf-16-le")[:2].decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("id", "data", "event"), [(HALF, None, None), ("7", f"a {HALF}", None), ("7", "a", HALF)]
)
def test_text_that_cannot_be_encoded_is_refused(id: str, data: str | None, event: str | None) -> None:
    with pytest.raises(ValueError, match=r"UTF-8 cannot encode: '\\ud83d'"):
        ServerSentEvent(id, data, event)


@pytest.mark.parametrize(
    "arguments", [(7,), ("7", 7), ("7", b"data"), ("7", "data", 7), ("7", "data", None, "7")]
)
def test_what_is_no_text_is_refused_before_it_is_sent(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        ServerSentEvent(*arguments)


@pytest.mark.parametrize("retry", [-1.0, inf, nan, 1e306])
def test_a_retry_that_clients_would_ignore_is_refused(retry: float) -> None:
    with pytest.raises(ValueError, match="retry of an event must be finite and not negative"):
        ServerSentEvent("7", retry=retry)


def test_events_of_the_same_content_are_equal_and_can_be_changed() -> None:
    event = ServerSentEvent("7", "a")
    assert event == ServerSentEvent("7", "a")
    assert repr(event) == "ServerSentEvent(id='7', data='a', event=None, retry=None)"
    assert replace(event, data="b").encode() == b"id: 7\ndata: b\n\n"
