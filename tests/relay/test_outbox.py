"""The signals that wait to be published."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purgatory.relay.outbox import Outbox
from purgatory.relay.texts import read
from purgatory.relay.transport import Publication

SENDER = "0123456789abcdef"

SIGNALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=20)


def filled(signals: list[tuple[int, int]], max_keys: int = 3) -> Outbox:
    outbox = Outbox(max_keys)
    for shard, key in signals:
        outbox.add(shard, str(key))
    return outbox


def sent(outbox: Outbox) -> dict[int, set[object] | None]:
    """For each shard the keys that are signalled, or None for the whole shard."""
    found: dict[int, set[object] | None] = {}
    for channel, text in outbox.publications(SENDER, 200):
        arrival = read(text)
        shard = int(channel, 16)
        if arrival.shard is None:
            keys = found.setdefault(shard, set())
            assert keys is not None
            assert keys.isdisjoint(arrival.keys)
            keys.update(arrival.keys)
        else:
            assert arrival.shard == shard
            assert shard not in found
            found[shard] = None
    return found


@given(SIGNALS)
def test_each_key_is_signalled_once_or_with_its_shard(signals: list[tuple[int, int]]) -> None:
    outbox = filled(signals)
    expected: dict[int, set[int]] = {}
    for shard, key in signals:
        expected.setdefault(shard, set()).add(key)
    assert sent(outbox) == {shard: keys if len(keys) <= 3 else None for shard, keys in expected.items()}
    assert outbox.collapses == sum(len(keys) > 3 for keys in expected.values())


@given(SIGNALS, SIGNALS)
def test_what_could_not_be_published_goes_with_what_came_later(
    signals: list[tuple[int, int]], later: list[tuple[int, int]]
) -> None:
    outbox = filled(signals)
    outbox.absorb(filled(later))
    assert sent(outbox) == sent(filled(signals + later))


def test_a_whole_shard_stays_whole() -> None:
    four = [(7, key) for key in range(4)]
    outbox = filled(four)
    outbox.absorb(filled(four))
    outbox.absorb(filled([(7, 9)]))
    assert sent(outbox) == {7: None}
    outbox = filled([(7, 9)])
    outbox.absorb(filled(four))
    assert sent(outbox) == {7: None}
    assert outbox.collapses == 1


def test_a_heartbeat_goes_to_the_channel_of_its_sender() -> None:
    outbox = Outbox(3)
    assert outbox.publications(SENDER, 200) == []
    later = Outbox(3)
    later.add_beat()
    outbox.absorb(later)
    outbox.absorb(Outbox(3))
    [publication] = outbox.publications(SENDER, 200)
    assert publication == Publication(SENDER, publication.text)
    assert read(publication.text).beat


def test_a_key_that_no_text_has_room_for_becomes_its_shard() -> None:
    outbox = Outbox(3)
    outbox.add(7, f'"{"x" * 300}"')
    assert sent(outbox) == {7: None}
