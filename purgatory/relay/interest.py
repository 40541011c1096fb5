"""The keys that somebody waits for here, and which of their values are unknown."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from math import inf
from typing import Final, cast, final

from purgatory.relay.keys import SHARDS, Key, encoded, shard_of

# The epoch that no shard has.
_UNKNOWN: Final = 0

# So many keys are looked at for each key that a batch may have. The others may not be watched any more.
_LOOKS: Final = 4


@final
class Shard:
    """The keys of one channel.

    A new epoch makes all values of the shard unknown, in O(1). `confirmed` says whether the server has
    confirmed the subscription and the connection is not lost. Only then values can be fresh.
    """

    __slots__ = ("channel", "confirmed", "entries", "epoch", "queued", "turn")

    def __init__(self, number: int) -> None:
        self.channel = f"{number:02x}"
        self.entries: dict[Key, Entry] = {}
        self.confirmed = False
        self.epoch = _UNKNOWN + 1
        self.queued = False
        # When anti-entropy makes it unknown, by the loop's clock.
        self.turn = 0.0


@final
class Entry:
    """A key of interest. Its value is fresh while `fresh` is the epoch of its shard."""

    __slots__ = ("fresh", "key", "queued", "shard")

    def __init__(self, key: Key, shard: Shard) -> None:
        self.key = key
        self.shard = shard
        self.fresh = _UNKNOWN
        self.queued = False


@final
class Interest:
    """The keys that operations watch here, or have watched until a short while ago: the keys of interest.

    A value is fresh if a refresh of it has begun after the last signal and after the last gap. All other
    values are unknown. A key that is watched and unknown has to be refreshed: `take` gives such keys, in
    batches.

    - A watched key is of interest. If its value is unknown, the key or its shard is queued, unless `take` has
      given it.
    - A value of a shard without a confirmed subscription is never fresh.
    - A key stays of interest until `forget`, so that a client who asks again soon finds a fresh value.

    What the purgatory tells of its keys is a hint, too: before it gives or forgets a key, it asks `watches`.
    So a hint that an exception has swallowed does no harm. It calls `queued` when there is more to take, and
    `wanted_changed` when a shard has got its first key or lost its last one. With `caching`, the process has
    values of its own. Without it, operations look at the shared state itself, and a key is taken in order to
    be checked.
    """

    def __init__(
        self,
        watches: Callable[[Key], bool],
        queued: Callable[[], None],
        wanted_changed: Callable[[], None],
        clock: Callable[[], float],
        *,
        caching: bool,
        anti_entropy: float,
    ) -> None:
        self._watches = watches
        self._queued_more = queued
        self._wanted_changed = wanted_changed
        self._clock = clock
        self._caching = caching
        self._anti_entropy = anti_entropy
        self.entries: dict[Key, Entry] = {}
        self.shards: Final = tuple([Shard(number) for number in range(SHARDS)])
        # Keys whose last watcher has gone, and when. The first one has gone first.
        self._left: dict[Key, float] = {}
        self._queue: deque[Entry] = deque()
        self._shard_queue: deque[Shard] = deque()
        # What is left of the shard that was taken from its queue last.
        self._current: list[Entry] = []
        self._shards_first = False

    def __repr__(self) -> str:
        return f"<Interest in {len(self.entries)} keys>"

    # What the purgatory tells

    def key_watched(self, key: Hashable) -> None:
        """`key` has its first watcher. Raises TypeError or ValueError when it has no encoding."""
        text = encoded(key)
        known = cast(Key, key)
        entry = self.entries.get(known)
        if entry is None:
            entry = self.entries[known] = Entry(known, self.shards[shard_of(text)])
        shard = entry.shard
        if known not in shard.entries:
            first = not shard.entries
            shard.entries[known] = entry
            if first:
                self._give_turn(shard)
                self._wanted_changed()
        self._left.pop(known, None)
        if self._caching and entry.fresh != shard.epoch:
            self._put(entry)

    def key_left(self, key: Hashable) -> None:
        """The last watcher of `key` has gone."""
        if key in self.entries:
            self._left[cast(Key, key)] = self._clock()

    # What makes values unknown

    def signalled(self, key: Key) -> None:
        """The shared state of `key` has changed. A key that is not of interest costs one look-up."""
        entry = self.entries.get(key)
        if entry is not None:
            entry.fresh = _UNKNOWN
            self._put(entry)

    def shard_signalled(self, shard: Shard) -> None:
        """The state of any key of `shard` may have changed. O(1)."""
        shard.epoch += 1
        self._give_turn(shard)
        if shard.entries and not shard.queued:
            self._shard_queue.append(shard)
            shard.queued = True
            self._queued_more()

    def all_signalled(self) -> None:
        """The state of any key may have changed. O(shards)."""
        for shard in self.shards:
            self.shard_signalled(shard)

    def confirmed(self, shards: Iterable[Shard]) -> None:
        """Signals of `shards` arrive from now on. Earlier ones may have been missed."""
        for shard in shards:
            shard.confirmed = True
            self.shard_signalled(shard)

    def unsubscribed(self, shards: Iterable[Shard]) -> None:
        """Signals of `shards` may be missed from now on, and may have been missed just before."""
        for shard in shards:
            shard.confirmed = False
            self.shard_signalled(shard)

    def take_turns(self) -> None:
        """Anti-entropy: make each shard unknown that nothing else has made unknown for long. O(shards)."""
        now = self._clock()
        for shard in self.shards:
            if shard.entries and shard.turn <= now:
                self.shard_signalled(shard)

    def _give_turn(self, shard: Shard) -> None:
        # At a different time for each shard and each process. The rest of the interval is for the pulse,
        # which calls `take_turns` at least four times in an interval.
        shard.turn = self._clock() + random.uniform(0.5, 0.75) * self._anti_entropy

    # What is subscribed

    def wanted(self) -> list[Shard]:
        """The shards that have keys."""
        return [shard for shard in self.shards if shard.entries]

    def forget(self, before: float) -> None:
        """Drop the keys whose last watcher left before this time. O(keys without a watcher)."""
        # A copy, because a finalizer may park an operation in the middle of this.
        for key in list(self._left):
            if self._left.get(key, inf) >= before:
                break
            self._left.pop(key, None)
            entry = self.entries.pop(key)
            entry.shard.entries.pop(key, None)
            if self._watches(key):
                self.key_watched(key)
            elif not entry.shard.entries:
                self._wanted_changed()

    # What has to be refreshed

    @property
    def waiting(self) -> int:
        """How many keys and shards are queued."""
        return len(self._queue) + len(self._shard_queue) + bool(self._current)

    def take(self, limit: int) -> list[Key]:
        """At most `limit` keys that are watched and unknown. If there are more, `waiting` is not 0.

        They count as fresh from now on. Refresh and check them, or `give_back` the keys that were not
        refreshed. A signal that comes meanwhile makes its key unknown, and queues it once more.
        """
        batch: list[Key] = []
        # So neither a stream of signals holds up the shards, nor do shards hold up signals.
        self._shards_first = not self._shards_first
        sources = [self._queued(), self._queued_with_shard()]
        if self._shards_first:
            sources.reverse()
        looks = _LOOKS * limit
        for source in sources:
            for entry in source:
                # A key that is also queued by itself is taken from that queue.
                if not entry.queued and self._begin(entry):
                    batch.append(entry.key)
                looks -= 1
                if not looks or len(batch) == limit:
                    return batch
        return batch

    def give_back(self, keys: Iterable[Key]) -> None:
        """`keys` were taken, and could not be refreshed. `take_again` takes them once more."""
        for key in keys:
            entry = self.entries.get(key)
            if entry is not None:
                entry.fresh = _UNKNOWN

    def take_again(self, keys: Iterable[Key]) -> list[Key]:
        """The keys among `keys` that are watched and still unknown, as `take` gives them."""
        entries = [self.entries.get(key) for key in keys]
        return [entry.key for entry in entries if entry is not None and self._begin(entry)]

    def _put(self, entry: Entry) -> None:
        if not entry.queued:
            # In this order: without memory, it is not queued, and does not look so.
            self._queue.append(entry)
            entry.queued = True
            self._queued_more()

    def _queued(self) -> Iterator[Entry]:
        while self._queue:
            entry = self._queue.popleft()
            entry.queued = False
            yield entry

    def _queued_with_shard(self) -> Iterator[Entry]:
        while self._current or self._shard_queue:
            if not self._current:
                shard = self._shard_queue.popleft()
                shard.queued = False
                self._current = list(shard.entries.values())
                continue
            yield self._current.pop()

    def _begin(self, entry: Entry) -> bool:
        """Whether the entry is watched and unknown. If so, it counts as fresh from now on."""
        key, shard = entry.key, entry.shard
        if entry.fresh == shard.epoch or self.entries.get(key) is not entry:
            return False
        if not self._watches(key):
            self._left.setdefault(key, self._clock())
            return False
        entry.fresh = shard.epoch if shard.confirmed else _UNKNOWN
        return True

    def _check(self) -> None:
        """Raise AssertionError where an invariant does not hold. O(keys). For tests."""
        current = {id(entry) for entry in self._current}
        for key, entry in self.entries.items():
            shard = entry.shard
            assert shard.entries[key] is entry, "a key of interest is in its shard"
            assert entry.fresh in (_UNKNOWN, *range(1, shard.epoch + 1))
            assert shard.confirmed or entry.fresh != shard.epoch, "without a subscription, all is unknown"
            assert key in self._left or self._watches(key), "a key that nobody watches is forgotten later"
        assert sum(len(shard.entries) for shard in self.shards) == len(self.entries)
        assert [entry.queued for entry in self._queue] == [True] * len(self._queue)
        assert [shard.queued for shard in self._shard_queue] == [True] * len(self._shard_queue)
        assert len(current) == len(self._current)
