"""The texts that relays exchange."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.relay import signal_text
from purgatory.relay.keys import Key, encoded
from purgatory.relay.texts import beat_text, keys_texts, read, shard_text
from tests.relay.test_keys import KEYS

SENDER = "0123456789abcdef"


@given(st.lists(KEYS, min_size=1, max_size=20), st.integers(200, 400))
def test_keys_are_spread_over_texts_that_are_short_enough(keys: list[Key], max_bytes: int) -> None:
    texts = keys_texts(SENDER, [encoded(key) for key in keys], max_bytes)
    if texts is None:
        assert max(len(encoded(key)) for key in keys) > max_bytes - len(keys_of_nothing())
        return
    assert all(len(text) <= max_bytes for text in texts)
    arrivals = [read(text) for text in texts]
    assert [key for arrival in arrivals for key in arrival.keys] == keys
    assert {arrival.sender for arrival in arrivals} == {SENDER}
    assert not any(arrival.beat or arrival.shard is not None for arrival in arrivals)


def keys_of_nothing() -> str:
    (text,) = keys_texts(SENDER, [], 200) or [""]
    return text


def test_texts_are_filled_to_the_last_byte() -> None:
    room = 200 - len(keys_of_nothing())
    key = encoded("x" * (room - 2))
    assert [len(text) for text in keys_texts(SENDER, [key, key], 200) or []] == [200, 200]
    assert keys_texts(SENDER, [key[:-1] + 'x"'], 200) is None


def test_a_text_names_a_shard_or_is_a_heartbeat() -> None:
    shard = read(shard_text(SENDER, 17))
    assert (shard.sender, shard.keys, shard.shard, shard.beat) == (SENDER, [], 17, False)
    beat = read(beat_text(SENDER))
    assert (beat.sender, beat.keys, beat.shard, beat.beat) == (SENDER, [], None, True)
    # Transports may count on it.
    assert max(len(shard_text(SENDER, 255)), len(beat_text(SENDER))) <= 200


def test_a_text_that_somebody_else_has_written_has_no_sender() -> None:
    assert signal_text(["tea", 7, ("job", b"\x00")]) == '{"keys":["tea",7,["job",{"hex":"00"}]]}'
    arrival = read('{"keys": ["tea", 7, ["job", {"hex": "00"}]], "more": 1.5}')
    assert (arrival.sender, arrival.keys) == (None, ["tea", 7, ("job", b"\x00")])
    with pytest.raises(TypeError, match="not float"):
        signal_text([1.5])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tea",
        "[]",
        "{}",
        '{"beat":1}',
        '{"keys":"tea"}',
        '{"keys":[1.5]}',
        '{"keys":[null]}',
        '{"shard":256}',
        '{"shard":-1}',
        '{"shard":true}',
        '{"shard":"1","keys":[]}',
        pytest.param(f'{{"keys":[{"[" * 100_000}{"]" * 100_000}]}}', id="deep"),
    ],
)
def test_a_text_that_says_nothing_known_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|it is|it has|there is no|this is no"):
        read(text)
