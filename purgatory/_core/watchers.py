"""Layer 3: key -> the operations that watch it, in the order in which they were parked."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Final, cast, final

from purgatory._core.operation import Operation
from purgatory._core.watch_list import Chunk, operations_at
from purgatory.errors import own_error


@final
class Watchers:
    """The watch lists of a purgatory: key -> the operations that watch it. Other keys have no list.

    Watching and unwatching cost O(1) for each key of the operation, however long the watch lists are and
    wherever in them the operation is. (With a dict of operations for each key, n deletions at its head make
    every look at its first entry cost O(n). A linked node for each operation and key costs 80 bytes, and this
    costs about 20.)

    Most keys have one watcher. Such an operation is in the table itself. The second watcher of a key makes a
    list of chunks, which remains until the last watcher leaves.

    An operation records in its own `_watched` where it is: a tuple that has, for each key, the chunk that
    holds the operation, or the key itself when it was the first watcher. In place of a tuple of one chunk it
    is that chunk, because a tuple takes 48 bytes and is one more object for the garbage collector.

    A look-up in the table calls the key's `__hash__` and `__eq__`, which are a user's code. They may raise,
    and they may answer otherwise than before. When a key cannot be looked up as its last operation leaves,
    its entry stays, and every reader passes over it, because its operations are not pending. A later
    operation on the key, when the key is good again, takes the entry over.

    The caller makes sure that no user's code changes the watch lists in the middle of `watch` and `unwatch`.
    It gives the operation its number, `_parked`, after `watch`, and takes it back before `unwatch`.
    """

    __slots__ = ("table", "watched")

    def __init__(self) -> None:
        # The only operation on a key, or the first Chunk of its list. mypyc would check a narrower type.
        self.table: dict[Hashable, object] = {}
        # Operation-key pairs.
        self.watched = 0

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, key: Hashable) -> bool:
        return bool(operations_at(self.on(key), 1))

    def on(self, key: Hashable) -> object:
        """The only operation that watches `key`, or the first chunk of its list, or None."""
        try:
            return self.table.get(key)
        except asyncio.CancelledError as error:
            raise own_error(error, "a key") from error
        except TypeError as error:
            if not isinstance(key, (list, set)):
                raise
            mend = f"did you mean {next(iter(key))!r}?" if len(key) == 1 else "make a call for each key"
            raise TypeError(f"this takes one key, not {key!r}: {mend}") from error

    def watching(self, key: Hashable, limit: int | None = None) -> list[Operation]:
        """The operations that watch `key`, in order, the first `limit` of them."""
        return operations_at(self.on(key), limit)

    def operations(self) -> list[Operation]:
        """All operations, each once, in the order of the keys. O(operation-key pairs)."""
        found: dict[int, Operation] = {}
        for place in list(self.table.values()):
            for operation in operations_at(place):
                found[id(operation)] = operation
        return list(found.values())

    def watch(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Append `operation` to the watch list of each of `keys`. A key named twice is watched once.

        When this raises, the operation is on no list.
        """
        # In an `if`, the comparison would have mypyc copy the tuple.
        several = len(keys) > 1
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
                    places = list(keys[:alone]) if alone else []
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
            operation._watched = keys[:alone] if places is None else tuple(places)
            self.unwatch(operation)
            raise

    def widen(self, operation: Operation, keys: tuple[Hashable, ...]) -> object:
        """Append a pending `operation` to the lists of more `keys`. Returns the part of its record for these.

        When this raises, it watches what it watched before.
        """
        record = operation._watched
        try:
            self.watch(operation, keys)
            more = operation._watched
        except BaseException:
            operation._watched = record
            raise
        operation._watched = _as_tuple(record) + _as_tuple(more)
        return more

    def _place(self, operation: Operation, key: Hashable) -> object:
        """Append it to one watch list. Returns the entry for its record, or _TWICE for a key named before."""
        table = self.table
        size = len(table)
        found = table.setdefault(key, operation)
        if found is operation:
            if len(table) == size:
                return _TWICE
            self.watched += 1
            return key
        if isinstance(found, Chunk):
            first = found
        elif cast(Operation, found)._parked > 0:
            first = self._list_of(cast(Operation, found), key)
        else:
            # The operation has left. The key could not be looked up then, and now it can.
            table[key] = operation
            self.watched += 1
            return key
        chunk = first.append(operation)
        if chunk is None:
            return _TWICE
        self.watched += 1
        return chunk

    def _list_of(self, alone: Operation, key: Hashable) -> Chunk:
        """Make a list for `key`, whose only watcher until now is `alone`. Its record remains the key."""
        keys: tuple[Hashable, ...] = alone._watched
        several = len(keys) > 1  # As in `watch`.
        first = Chunk(key, None, None) if several else Chunk(keys[0], keys, None)
        first.operations.append(alone)
        self.table[key] = first
        return first

    def unwatch(self, operation: Operation) -> BaseException | None:
        """Remove `operation` from all its watch lists. Its `_watched` is then the tuple of its keys.

        Returns the first exception of a key that could not be looked up, and None when there was none.
        """
        record = operation._watched
        problem: BaseException | None = None
        if isinstance(record, Chunk):
            keys = record.keys
            if keys is None:
                keys = record.keys = (record.key,)
            operation._watched = keys
            self.watched -= 1
            try:
                self._leave(operation, record)
            except BaseException as error:
                problem = error
            return problem
        places: tuple[object, ...] = record
        self.watched -= len(places)
        listed = False
        for place in places:
            try:
                if isinstance(place, Chunk):
                    listed = True
                    self._leave(operation, place)
                    continue
                # The first watcher of a key is in the entry of the key, or in the first chunk of its list.
                found = self.table[place]
                if found is operation:
                    del self.table[place]
                elif isinstance(found, Chunk):
                    self._leave(operation, found)
                else:
                    # The key is equal to another key now, whose entry belongs to other operations.
                    raise KeyError(place)
            except BaseException as error:
                if problem is None:
                    problem = error
        if listed:
            operation._watched = keys_at(places)
        return problem

    def _leave(self, operation: Operation, chunk: Chunk) -> None:
        emptied = chunk.remove(operation)
        if emptied is not None:
            key = emptied.key
            if self.table[key] is not emptied:
                raise KeyError(key)
            del self.table[key]

    def clear(self) -> None:
        """Forget the entries that have stayed."""
        self.table = {}


# The answer of `_place` for a key that was named before.
_TWICE: Final = object()


def _as_tuple(places: object) -> tuple[object, ...]:
    return (places,) if isinstance(places, Chunk) else cast("tuple[object, ...]", places)


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
    """Whether pending operations are in the list of this chunk. The entry of a bad key has none."""
    return bool(operations_at(chunk if chunk.first is None else chunk.first, 1))


def hashable_keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The keys as a tuple. Raises TypeError for a str and for an unhashable key."""
    if type(keys) is tuple:
        given = keys
    elif isinstance(keys, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"keys must be a collection of keys, not {keys!r}: did you mean [{keys!r}]?")
    else:
        given = tuple(keys)
    try:
        for key in given:
            hash(key)
    except asyncio.CancelledError as error:
        raise own_error(error, "a key") from error
    return given
