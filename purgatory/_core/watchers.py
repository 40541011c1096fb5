"""Layer 3: key -> the operations that watch it, first come first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Final, cast, final

from purgatory._core.operation import Operation

# Long enough that a busy key's list costs little more than one pointer an operation, short enough that
# finding one of them in it is nothing. Of 4, 8, 16, 32 and 64, see benchmarks/watch_lists.py.
CHUNK_LENGTH: Final = 16


@final
class Chunk:
    """A chunk of one key's watch list: up to CHUNK_LENGTH operations, and its neighbours.

    A chunk that has become empty leaves the list, but goes on pointing forward. So a walk that stands on
    it finds its way, whatever was taken away meanwhile, here or ahead.
    """

    __slots__ = ("following", "key", "operations", "previous")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.operations: list[Operation] = []
        # Of a key's first chunk the last one, None while it is the only one.
        self.previous: Chunk | None = None
        self.following: Chunk | None = None


@final
class Watchers:
    """The watch lists of a purgatory: key -> who watches it. A key nobody watches is not in it.

    Watching and unwatching cost O(1) for each key of the operation, whatever the length of the lists and
    wherever in them the operation stands. (A dict of operations per key looks simpler; but after n deletions
    at its head every look at its first entry costs O(n), and a linked node for each operation and key costs
    80 bytes where this costs about 20.)

    Most keys are watched by one operation, so one that is alone stands in the table by itself. The second
    makes it a list, a chain of chunks, which it stays until nobody is left.

    Where an operation stands is kept in its own `_watched`: for each of its keys the key, where it is alone,
    or else the chunk it is on. That is a tuple; but for a single chunk just that, because a tuple for it
    would be 48 bytes, and one more object for the collector.
    """

    __slots__ = ("_table", "watched")

    def __init__(self) -> None:
        # To the only operation on the key, or to the first chunk of its list.
        self._table: dict[Hashable, Operation | Chunk] = {}
        # Operation-key pairs.
        self.watched = 0

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._table

    def watched_keys(self) -> list[Hashable]:
        """The keys somebody watches, as they are now."""
        return list(self._table)

    def on(self, key: Hashable) -> Operation | Chunk | None:
        """The only operation that watches `key`, or the first chunk of its list, or None."""
        return self._table.get(key)

    def some_keys(self, limit: int) -> list[Hashable]:
        """At most `limit` of the keys: all, or else as many of the first in the table as of the last."""
        if len(self._table) <= limit:
            return list(self._table)
        late = limit // 2
        return [*islice(self._table, limit - late), *islice(reversed(self._table), late)]

    def watching(self, key: Hashable, limit: int | None = None) -> list[Operation]:
        """The operations that watch `key`, first come first; with a `limit`, the first so many of them."""
        found: list[Operation] = []
        place = self._table.get(key)
        if isinstance(place, Chunk):
            chunk: Chunk | None = place
            while chunk is not None and (limit is None or len(found) < limit):
                found += chunk.operations
                chunk = chunk.following
            if limit is not None:
                del found[limit:]
        elif place is not None:
            found.append(place)
        return found

    def count(self, key: Hashable, limit: int) -> int:
        """How many operations watch `key`; counting ends at `limit` or a little above it."""
        place = self._table.get(key)
        if not isinstance(place, Chunk):
            return 0 if place is None else 1
        count = 0
        chunk: Chunk | None = place
        while chunk is not None and count < limit:
            count += len(chunk.operations)
            chunk = chunk.following
        return count

    def operations(self) -> list[Operation]:
        """All operations, each once: at the first of its keys."""
        return [
            operation
            for key in self.watched_keys()
            for operation in self.watching(key)
            if keys_at(operation._watched)[0] is key
        ]

    def watch(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Put `operation` at the end of the list of each of `keys`; once where one is named twice.

        A key that cannot be compared with those in the table raises, and then it is on none.
        """
        several = len(keys) > 1
        # Not the comparison itself, from which mypy concludes what makes mypyc copy the tuple.
        if not several:
            place = self._place(operation, keys[0])
            operation._watched = place if isinstance(place, Chunk) else keys
            return
        alone = 0
        places: list[object] | None = None
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
        except BaseException:
            operation._watched = keys[:alone] if places is None else tuple(places)
            self.unwatch(operation)
            raise
        if places is None:
            # Alone on all: what was given serves, and nothing is made for it.
            operation._watched = keys
        elif len(places) == 1 and isinstance(places[0], Chunk):
            operation._watched = places[0]
        else:
            operation._watched = tuple(places)

    def _place(self, operation: Operation, key: Hashable) -> object:
        """Put it on one key; where it stands there, `key` itself when alone, or _TWICE when it did before."""
        table = self._table
        size = len(table)
        found = table.setdefault(key, operation)
        if found is operation:
            if len(table) == size:
                return _TWICE
            self.watched += 1
            return key
        first = found if isinstance(found, Chunk) else self._list_of(found, key)
        chunk = first.previous or first
        if chunk.operations[-1] is operation:
            return _TWICE
        if len(chunk.operations) >= CHUNK_LENGTH:
            last = chunk
            # The first one's key object, so that equal keys do not each keep their own alive.
            chunk = Chunk(first.key)
            chunk.previous = last
            last.following = chunk
            first.previous = chunk
        chunk.operations.append(operation)
        self.watched += 1
        return chunk

    def _list_of(self, alone: Operation, key: Hashable) -> Chunk:
        """Make a list of the operation that has stood alone on `key` until now."""
        places: list[object] = list(alone._watched)
        if len(places) > CHUNK_LENGTH:
            self._list_everywhere(alone, places)
            return cast(Chunk, self._table[key])
        # Which of its places that is, by the rules of a dict.
        index = 0
        while not (
            places[index] is key
            or (
                not isinstance(places[index], Chunk)
                and hash(places[index]) == hash(key)
                and places[index] == key
            )
        ):
            index += 1
        chunk = Chunk(places[index])
        chunk.operations.append(alone)
        self._table[key] = chunk
        places[index] = chunk
        alone._watched = chunk if len(places) == 1 else tuple(places)
        return chunk

    def _list_everywhere(self, alone: Operation, places: list[object]) -> None:
        """Make lists of all its keys at once: to search so many for each one shared would be quadratic."""
        try:
            for index, place in enumerate(places):
                if not isinstance(place, Chunk):
                    chunk = Chunk(place)
                    chunk.operations.append(alone)
                    self._table[place] = chunk
                    places[index] = chunk
        finally:
            # Even if a key cannot be compared: those before it stand in lists now.
            alone._watched = tuple(places)

    def unwatch(self, operation: Operation) -> None:
        """Take `operation` off all its keys; from then on its `_watched` is a tuple of these."""
        if isinstance(operation._watched, Chunk):
            chunk: Chunk = operation._watched
            operation._watched = (chunk.key,)
            self._leave(operation, chunk)
            return
        places: tuple[object, ...] = operation._watched
        listed = False
        for place in places:
            if isinstance(place, Chunk):
                listed = True
                self._leave(operation, place)
            else:
                self.watched -= 1
                del self._table[place]
        if listed:
            operation._watched = keys_at(places)

    def _leave(self, operation: Operation, chunk: Chunk) -> None:
        self.watched -= 1
        operations = chunk.operations
        # By identity: users' classes may define what equality they like.
        index = 0
        while operations[index] is not operation:
            index += 1
        del operations[index]
        if not operations:
            self._drop(chunk)

    def _drop(self, chunk: Chunk) -> None:
        key, following, previous = chunk.key, chunk.following, chunk.previous
        first = self._table[key]
        if chunk is not first:
            cast(Chunk, previous).following = following
        elif following is not None:
            self._table[key] = following
        else:
            del self._table[key]
            return
        # Whose `previous` led to it: the one behind it or, from the first, its end of the list.
        end = cast(Chunk, first) if following is None else following
        end.previous = None if previous is end else previous
        # Nothing leads backward from it, or a walk could keep a whole list alive from behind.
        chunk.previous = None


# What `_place` returns for a key that was named before.
_TWICE: Final = object()


def keys_at(places: object) -> tuple[Hashable, ...]:
    """The keys of the places that a pending operation has in its `_watched`."""
    if isinstance(places, Chunk):
        return (places.key,)
    every = cast("tuple[Hashable, ...]", places)
    return tuple([place.key if isinstance(place, Chunk) else place for place in every])


def hashable_keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The keys as a tuple: at least one, and all hashable."""
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
