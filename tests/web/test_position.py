"""A position names a log and an offset, and its text comes back as the same position or is refused."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from purgatory.web import Position, ServerSentEvent

ALPHABET = "abcXYZ019_-"


@given(st.text(ALPHABET, min_size=1, max_size=64), st.integers(0, 10**15 - 1))
def test_the_text_of_a_position_is_parsed_to_the_same_position(log: str, offset: int) -> None:
    position = Position(log, offset)
    assert Position.parse(str(position)) == position


def test_the_text_needs_no_quotes_in_a_url_or_an_event() -> None:
    text = str(Position("d0390cc6", 7))
    assert text == "d0390cc6:7" == quote(text, safe=":")
    assert ServerSentEvent(id=text).id == text


def test_two_logs_have_no_position_in_common() -> None:
    assert Position("a", 7) != Position("b", 7)


@pytest.mark.parametrize(
    "text",
    [
        *("", "7", ":7", "log", "log:", "log:-1", "log:1.5", "log:1e3", "log: 1", "log:1\n"),
        *("log:\N{ARABIC-INDIC DIGIT ONE}", "lög:1", "a log:1", "log-1", "x" * 65 + ":1", "log:" + "9" * 16),
    ],
)
def test_a_text_that_is_no_position_is_a_bad_request(text: str) -> None:
    with pytest.raises(HTTPException, match="400: a position has the text that the server has sent"):
        Position.parse(text)


@pytest.mark.parametrize(
    ("log", "offset"), [("", 0), ("a log", 0), ("x" * 65, 0), ("log", -1), ("log", 10**15), ("log", 1.5)]
)
def test_a_position_whose_text_nobody_could_parse_is_refused(log: str, offset: int) -> None:
    with pytest.raises(ValueError, match="the text of a position must be like 'd0390cc6:7', not "):
        Position(log, offset)
