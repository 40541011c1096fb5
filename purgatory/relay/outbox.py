"""The signals that wait to be published."""

from __future__ import annotations

import asyncio
from typing import final

from purgatory.relay.texts import beat_text, keys_texts, shard_text
from purgatory.relay.transport import Publication


@final
class Outbox:
    """Signals that are published together, each key once.

    In place of more than `max_keys` keys of one shard, it signals the whole shard. Then other processes look
    at more keys than necessary, but memory stays bounded, and no signal is lost.
    """

    __slots__ = ("_beat", "_max_keys", "_shards", "collapses", "waiters")

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        # Shard -> the encoded keys, in the order of the signals. None is the whole shard.
        self._shards: dict[int, dict[str, None] | None] = {}
        self._beat = False
        # Set when the transport has taken the signals.
        self.waiters: list[asyncio.Future[None]] = []
        # How many shards are signalled as a whole.
        self.collapses = 0

    def add(self, shard: int, key: str) -> None:
        """Signal an encoded key."""
        keys = self._shards.setdefault(shard, {})
        if keys is not None:
            keys[key] = None
            if len(keys) > self._max_keys:
                self._collapse(shard)

    def add_beat(self) -> None:
        """Add a heartbeat."""
        self._beat = True

    def absorb(self, later: Outbox) -> None:
        """Add what has come later, because this could not be published."""
        for shard, keys in later._shards.items():
            if keys is None:
                self._collapse(shard)
            else:
                for key in keys:
                    self.add(shard, key)
        self._beat = self._beat or later._beat
        self.waiters += later.waiters

    def publications(self, sender: str, max_bytes: int) -> list[Publication]:
        """What is to be published. The heartbeat goes to the sender's own channel."""
        found: list[Publication] = []
        if self._beat:
            found.append(Publication(sender, beat_text(sender)))
        for shard, keys in self._shards.items():
            channel = f"{shard:02x}"
            texts = None if keys is None else keys_texts(sender, keys, max_bytes)
            if texts is None:
                texts = [shard_text(sender, shard)]
            found += [Publication(channel, text) for text in texts]
        return found

    def _collapse(self, shard: int) -> None:
        if self._shards.get(shard, {}) is not None:
            self._shards[shard] = None
            self.collapses += 1
