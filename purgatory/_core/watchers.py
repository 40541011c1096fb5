"""Layer 3: key -> the operations that watch it, in the order in which they were parked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Final, cast, final

from purgatory._core.operation import NO_ROOM, Operation
from purgatory._core.outcome import PENDING
from purgatory._core.watch_list import Chunk, operations_at


@final
class Watchers:
    """The watch lists of a purgatory: key -> the operations that watch it. Other keys have no list.

    Watching and unwatching cost O(1) for each key of the operation, however long the watch lists are and
    wherever in them the operation is. (A dict of operations for each key looks simpler. But after n deletions
    at its head every look at its first entry costs O(n). A linked node for each operation and key costs 80
    bytes, and this costs about 20.)

    Most keys have one watcher. Such an operation is in the table itself, without a list. The second watcher
    of a key makes a list of chunks, which remains until the last watcher leaves.

    An operation records in its own `_watched` where it is. For each of its keys that is the chunk that holds
    it, or the key itself when it was the first watcher. The record is a tuple. For a single chunk it is the
    chunk itself, because a tuple takes 48 bytes and is one more object for the garbage collector.

    A look-up in the table calls the key's `__hash__` and `__eq__`, which are a user's code and may raise. So
    every change of the table is a single statement, which changes it wholly or not at all. A key may also
    change its hash after it was watched. Then its entry cannot be found any more: it is dead once its
    operation has left, every reader skips it, and `repair` makes a table without it. The caller makes sure
    that no user's code changes the watch lists in the middle of `watch` and `unwatch`. It gives the operation
    its number, `_parked`, when `watch` is over, and takes it back when `unwatch` is.
    """

    __slots__ = ("_dead", "_table", "_unreachable", "watched")

    def __init__(self) -> None:
        # The value is the only operation on the key, or the first Chunk of its list. The type is not said,
        # because mypyc would check it at every look-up.
        self._table: dict[Hashable, object] = {}
        # Entries with an operation that has left, but could not be removed, because its key raises.
        self._dead = 0
        # Whether there have been keys that an Unreachable stands for.
        self._unreachable = False
        # Operation-key pairs.
        self.watched = 0

    def __len__(self) -> int:
        if not self._dead:
            return len(self._table)
        # Among the dead entries may be lists in which others still wait. So each entry is looked at.
        keys = 0
        for place in self.places():
            keys += _alive(place)
        return keys

    def __contains__(self, key: Hashable) -> bool:
        place = self._table.get(key)
        return place is not None and _alive(place)

    def watched_keys(self) -> list[Hashable]:
        """The keys that have watchers now."""
        return self.some_keys(len(self._table))

    def on(self, key: Hashable) -> object:
        """The only operation that watches `key`, or the first chunk of its list, or None."""
        return self._table.get(key)

    def places(self) -> list[object]:
        """For each key, the only operation that watches it, or the first chunk of its list.

        In one step, because a thread that asks for the statistics may run while the loop parks operations.
        """
        return list(self._table.values())

    def some_keys(self, limit: int) -> list[Hashable]:
        """At most `limit` of the keys. Where there are more, half are the oldest and half are the newest."""
        table = self._table
        late = limit // 2 if len(table) > limit else 0
        if self._dead:
            keys = _first_watched(table.items(), limit - late)
            known = {id(key) for key in keys}
            newest = _first_watched(reversed(table.items()), late)
            keys += [key for key in newest if id(key) not in known]
        else:
            keys = [*islice(table, limit - late), *islice(reversed(table), late)]
        if self._unreachable:
            keys = [key.key if isinstance(key, Unreachable) else key for key in keys]
        return keys

    def watching(self, key: Hashable, limit: int | None = None) -> list[Operation]:
        """The operations that watch `key`, in order. A `limit` gives the first so many of them."""
        return operations_at(self._table.get(key), limit, pending_only=self._dead > 0)

    def count(self, key: Hashable, limit: int) -> int:
        """How many operations watch `key`. Counting stops at `limit` or a little above it."""
        place = self._table.get(key)
        if not isinstance(place, Chunk):
            return 0 if place is None or (self._dead and not _alive(place)) else 1
        return place.count(limit)

    def operations(self) -> list[Operation]:
        """All operations, each once, in the order of the keys. O(operation-key pairs)."""
        found: dict[int, Operation] = {}
        for place in self.places():
            for operation in operations_at(place, pending_only=self._dead > 0):
                found[id(operation)] = operation
        return list(found.values())

    def watch(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Append `operation` to the watch list of each of `keys`. A key named twice is watched once.

        When this raises, the operation is on no list.
        """
        several = len(keys) > 1
        # With the comparison in the `if`, mypy narrows the tuple's type and mypyc copies the tuple.
        if not several:
            place = self._place(operation, keys[0])
            operation._watched = place if isinstance(place, Chunk) else keys
            return
        alone = 0
        places: list[object] | None = None
        place = _TWICE
        try:
            for key in keys:
                place = self._place(operation, key)
                if places is None:
                    if place is key:
                        alone += 1
                        continue
                    places = list(keys[:alone])
                if place is not _TWICE:
                    places.append(place)
            if places is None:
                # It is the first watcher of each key. The keys as given are the record.
                operation._watched = keys
            elif len(places) == 1 and isinstance(places[0], Chunk):
                operation._watched = places[0]
            else:
                operation._watched = tuple(places)
        except BaseException:
            left: list[object] = list(keys[:alone]) if places is None else places
            if place is not _TWICE and not any(place is each for each in left):
                left.append(place)  # pragma: no cover  # the tests of failing allocations run untraced
            operation._watched = tuple(left)
            self.unwatch(operation)
            self.repair()
            raise

    def _place(self, operation: Operation, key: Hashable) -> object:
        """Append it to one watch list. Returns the entry for its record, or _TWICE for a key named before."""
        table = self._table
        size = len(table)
        # A number is an object, too. So it is made before anything changes.
        watched = self.watched + 1
        found = table.setdefault(key, operation)
        if found is operation:
            if len(table) == size:
                return _TWICE
            self.watched = watched
            return key
        if isinstance(found, Chunk):
            first = found
        elif cast(Operation, found)._parked:
            first = self._list_of(cast(Operation, found), key)
        else:
            # The key could not be looked up for a while, and now it can.
            table[key] = operation
            self._dead -= 1
            self.watched = watched
            return key
        if first.previous is None and not first.operations:
            self._dead -= 1
        chunk = first.append(operation)
        if chunk is None:
            return _TWICE
        self.watched = watched
        return chunk

    def _list_of(self, alone: Operation, key: Hashable) -> Chunk:
        """Make a list for `key`, whose only watcher until now is `alone`. Its record remains the key."""
        keys: tuple[Hashable, ...] = alone._watched
        first = Chunk(keys[0] if len(keys) == 1 else key, None)
        first.operations.append(alone)
        size = len(self._table)
        self._table[key] = first
        if len(self._table) > size:
            # The hash of the key is not what it was a moment ago. `alone` still has its old entry.
            first.operations.clear()
            self._dead += 1
        return first

    def unwatch(self, operation: Operation) -> BaseException | None:
        """Remove `operation` from all its watch lists. Its `_watched` is then the tuple of its keys.

        Returns the first exception of a key that could not be looked up. That key's entry is dead then, and
        the caller calls `repair` as soon as its own books are right.
        """
        record = operation._watched
        if isinstance(record, Chunk):
            chunk: Chunk = record
            keys = _only(chunk.key)
            self.watched -= 1
            try:
                self._leave(operation, chunk)
            except BaseException as error:
                self._dead += 1
                operation._watched = keys
                return error
            operation._watched = keys
            return None
        places: tuple[object, ...] = record
        table = self._table
        problem: BaseException | None = None
        self.watched -= len(places)
        listed = False
        left = 0
        while True:
            try:
                for place in places[left:] if left else places:
                    left += 1
                    if isinstance(place, Chunk):
                        if not listed:
                            operation._watched = keys_at(places)
                            listed = True
                        self._leave(operation, place)
                        continue
                    # The key may have changed, and be equal to a key now whose entry is somebody else's.
                    found = table[place]
                    if found is operation:
                        del table[place]
                    elif isinstance(found, Chunk):
                        # The first watcher of a key is the first one of its list.
                        self._leave(operation, found)
                    else:
                        raise KeyError(place)
                return problem
            except BaseException as error:
                # Something of the operation still stands in the table.
                self._dead += 1
                problem = problem or error

    def _leave(self, operation: Operation, chunk: Chunk) -> None:
        emptied = chunk.remove(operation)
        if emptied is not None:
            if self._table[emptied.key] is not emptied:
                raise KeyError(emptied.key)
            del self._table[emptied.key]

    def repair(self) -> None:
        """Make a new table without the dead entries. Call it after `unwatch` has returned an exception.

        It goes over all entries, so it does nothing until one entry of eight is dead. It looks nothing up in
        the old table, and a key that cannot be put into the new one gets an `Unreachable` in its place.
        """
        if self._dead * 8 <= len(self._table):
            return
        table: dict[Hashable, object] = {}
        for key, place in list(self._table.items()):
            if not _stays(place):
                continue
            try:
                found = table.setdefault(key, place)
            except NO_ROOM:
                # The key may be good. A later repair has room for this.
                return
            except Exception:
                # Nobody can check this key. Its operations remain listed until they expire.
                found = None
            if found is not place:
                table[Unreachable(key)] = place
                self._unreachable = True
        self._table = table
        self._dead = 0

    def clear(self) -> None:
        """Forget everything."""
        self._table = {}
        self._dead = self.watched = 0

    def _check(self) -> None:
        """Raise AssertionError where an invariant does not hold. O(operation-key pairs). For tests."""
        watched = dead = 0
        for entry, place in self._table.items():
            key = entry.key if isinstance(entry, Unreachable) else entry
            watchers = operations_at(place, pending_only=self._dead > 0)
            watched += len(watchers)
            dead += not watchers or len(watchers) < len(operations_at(place))
            for operation in watchers:
                keys = keys_at(operation._watched)
                assert any(key is one for one in keys) or key in keys, (
                    "an operation knows the keys that it watches"
                )
            newest = 0
            for operation in watchers:
                assert operation._parked >= newest, "the watchers of a key are in the order of parking"
                newest = operation._parked
            if isinstance(place, Chunk):
                place._check()
        assert watched == self.watched, "the count of operation-key pairs is right"
        assert dead <= self._dead, (
            "every list that is empty, or has an operation that left, is counted as dead"
        )


@final
class Unreachable:
    """Stands in the table for a key that raises, or has become equal to another key. Its hash is its own."""

    __slots__ = ("key",)

    def __init__(self, key: Hashable) -> None:
        self.key = key


def _alive(place: object) -> bool:
    """Whether an entry of the table has pending operations."""
    return place.any_pending() if isinstance(place, Chunk) else cast(Operation, place)._state is PENDING


def _first_watched(entries: Iterable[tuple[Hashable, object]], limit: int) -> list[Hashable]:
    """The keys of the first `limit` entries that have pending operations."""
    keys: list[Hashable] = []
    for key, place in entries:
        if len(keys) >= limit:
            break
        if _alive(place):
            keys.append(key)
    return keys


def _stays(place: object) -> bool:
    """Whether operations of an entry have not left, once those are removed that could not be found."""
    return place.prune() if isinstance(place, Chunk) else cast(Operation, place)._parked > 0


# The answer of `_place` for a key that was named before.
_TWICE: Final = object()


def _only(key: Hashable) -> tuple[Hashable, ...]:
    # A function of its own, because mypyc checks only what a function returns for want of memory.
    return (key,)


def keys_at(places: object) -> tuple[Hashable, ...]:
    """The keys in the record that a pending operation has in its `_watched`."""
    if isinstance(places, Chunk):
        return (places.key,)
    every = cast("tuple[Hashable, ...]", places)
    # By index, because mypyc makes an iterator for a tuple of any length.
    for index in range(len(every)):
        if isinstance(every[index], Chunk):
            return tuple([place.key if isinstance(place, Chunk) else place for place in every])
    return every


def first_watched(places: object) -> list[Hashable]:
    """The keys in such a record that nobody else watches. The operation has it, and is not pending yet."""
    if isinstance(places, Chunk):
        return [] if _others_wait(places) else [places.key]
    found: list[Hashable] = []
    for place in cast("tuple[Hashable, ...]", places):
        if not isinstance(place, Chunk):
            found.append(place)
        elif not _others_wait(place):
            found.append(place.key)
    return found


def _others_wait(chunk: Chunk) -> bool:
    """Whether pending operations are in the list of this chunk. Without them, it was a dead entry."""
    return (chunk if chunk.first is None else chunk.first).any_pending()


def hashable_keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The keys as a tuple. Raises ValueError without keys, TypeError for a str or an unhashable key."""
    if type(keys) is tuple:
        given = keys
    elif isinstance(keys, (str, bytes)):
        raise TypeError(f"keys must be a collection of keys, not {keys!r}: did you mean [{keys!r}]?")
    else:
        given = tuple(keys)
    if not given:
        raise ValueError("an operation must watch at least one key")
    for key in given:
        hash(key)
    return given
