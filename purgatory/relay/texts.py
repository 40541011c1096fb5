"""The texts that relays exchange: JSON objects, which a trigger of a database can write, too.

- ``{"keys":["tea",7,["job",3],{"hex":"00ff"}]}``: these keys have changed.
- ``{"shard":17}``: any key of the shard may have changed.
- ``{"beat":true}``: a heartbeat, by which a relay hears whether it hears.

Each text may name its sender: ``"from":"9f2c…"``. A relay has dealt with its own signals when they were
given, so it ignores them. It also ignores the heartbeats of other relays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from purgatory.relay.keys import SHARDS, Key, decoded, encoded


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a text says."""

    sender: object
    keys: list[Key]
    shard: int | None
    beat: bool


def signal_text(keys: Iterable[object]) -> str:
    """The text that signals `keys`, for a program that publishes it itself, for example in its transaction.

    Raises TypeError for a key that has no encoding.
    """
    return f'{{"keys":[{",".join(map(encoded, keys))}]}}'


def keys_texts(sender: str, keys: Iterable[str], max_bytes: int) -> list[str] | None:
    """Texts of at most `max_bytes` that signal encoded `keys`. None if one key is too long for a text."""
    head, tail = f'{{"from":"{sender}","keys":[', "]}"
    room = max_bytes - len(head) - len(tail)
    texts: list[str] = []
    gathered: list[str] = []
    used = 0
    for key in keys:
        if len(key) > room:
            return None
        if gathered and used + len(key) > room:
            texts.append(f"{head}{','.join(gathered)}{tail}")
            gathered.clear()
            used = 0
        gathered.append(key)
        # With the comma behind it.
        used += len(key) + 1
    texts.append(f"{head}{','.join(gathered)}{tail}")
    return texts


def shard_text(sender: str, shard: int) -> str:
    """The text that says that any key of `shard` may have changed."""
    return f'{{"from":"{sender}","shard":{shard}}}'


def beat_text(sender: str) -> str:
    """A heartbeat."""
    return f'{{"from":"{sender}","beat":true}}'


def read(text: str) -> Arrival:
    """What `text` says. Raises ValueError when it says nothing that this version knows."""
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict) or not isinstance(keys := fields.get("keys", []), list):
            raise ValueError("it is no JSON object with a list of keys")
        changed = [key if type(key) is str or type(key) is int else decoded(key) for key in keys]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    shard, beat = fields.get("shard"), fields.get("beat") is True
    if shard is not None and not (type(shard) is int and 0 <= shard < SHARDS):
        raise ValueError(f"there is no shard {shard!r}")
    if "keys" not in fields and shard is None and not beat:
        raise ValueError("it has neither keys nor a shard nor a heartbeat")
    return Arrival(fields.get("from"), changed, shard, beat)
