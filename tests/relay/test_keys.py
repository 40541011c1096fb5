"""Keys on the wire."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from enum import Enum, IntEnum, StrEnum
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.relay.keys import SHARDS, Key, decoded, encoded, shard_of

KEYS: st.SearchStrategy[Key] = st.recursive(
    st.text(st.characters(codec="utf-8")) | st.binary() | st.integers(),
    lambda keys: st.lists(keys, max_size=4).map(tuple),
    max_leaves=8,
)


class Part(NamedTuple):
    topic: str
    number: int


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


class CaseBlind(str):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


class Plain(Enum):
    ONE = 1


@given(KEYS)
def test_a_key_comes_back_as_it_was(key: Key) -> None:
    text = encoded(key)
    assert text.isascii()
    found = decoded(json.loads(text))
    assert found == key
    assert type(found) is type(key)


@given(KEYS, KEYS)
def test_two_keys_have_one_text_only_if_they_are_equal(one: Key, other: Key) -> None:
    assert (encoded(one) == encoded(other)) == (one == other)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("tea", '"tea"'),
        ("thé", '"th\\u00e9"'),
        (7, "7"),
        (b"\x00\xff", '{"hex":"00ff"}'),
        (("job", 3), '["job",3]'),
        ((), "[]"),
        (Part("tea", 3), '["tea",3]'),
        (Colour.RED, '"red"'),
        (Size.SMALL, "1"),
    ],
)
def test_a_key_is_written_as_json(key: Key, text: str) -> None:
    assert encoded(key) == text
    assert decoded(json.loads(text)) == key


@pytest.mark.parametrize(
    "key", [True, 1.0, None, ("a", False), (("a", 1.5),), ["a"], Plain.ONE, CaseBlind("A"), bytearray(b"a")]
)
def test_other_keys_are_refused(key: object) -> None:
    with pytest.raises(TypeError, match="must be a str, bytes, an int or a tuple of these, not "):
        encoded(key)


def test_a_surrogate_is_refused() -> None:
    # Read again, these two would be one character.
    with pytest.raises(ValueError, match="surrogates"):
        encoded("\ud83d\ude00")
    assert decoded(json.loads(encoded("\U0001f600"))) == "\U0001f600"


@pytest.mark.parametrize(
    "text", ["null", "true", "1.5", '{"hex":1}', '{"hex":"0"}', '{"bin":"00"}', "[1,null]"]
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no encoded key|hexadecimal|fromhex"):
        decoded(json.loads(text))


def test_a_shard_is_the_same_in_every_process() -> None:
    keys = ["tea", 7, b"\x00", ("job", 3)]
    code = f"from purgatory.relay.keys import *; print([shard_of(encoded(key)) for key in {keys!r}])"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    ).stdout
    assert json.loads(printed) == [shard_of(encoded(key)) for key in keys] == [123, 130, 67, 111]


def test_keys_spread_over_all_shards() -> None:
    shards = [shard_of(encoded(("topic", number))) for number in range(SHARDS * 40)]
    assert set(shards) == set(range(SHARDS))
    assert max(map(shards.count, range(SHARDS))) < 3 * 40


def test_the_encoding_calls_no_method_of_a_subclass() -> None:
    class Cancelled(str):
        def isascii(self) -> bool:
            raise asyncio.CancelledError

    assert encoded(Cancelled("t\u00e9")) == encoded("t\u00e9")
