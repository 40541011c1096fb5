"""Layer 3: key -> the operations that watch it, in the order in which they were parked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Final, cast, final

from purgatory._core.operation import Operation

# Long enough that the watch list of a busy key costs little more than one pointer for each operation, and
# short enough that a search of a chunk is cheap. The benchmark of watch lists compares 4, 8, 16, 32 and 64.
CHUNK_LENGTH: Final = 16


@final
class Chunk:
    """A chunk of one key's watch list, which is an unrolled linked list: up to CHUNK_LENGTH operations.

    An empty chunk leaves the list, but keeps its forward link. So a walk that has reached it finds the rest
    of the list, whatever has left meanwhile.
    """

    __slots__ = ("following", "key", "operations", "previous")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.operations: list[Operation] = []
        # For the first chunk of a list this is the last chunk, or None while there is only one.
        self.previous: Chunk | None = None
        self.following: Chunk | None = None


@final
class Watchers:
    """The watch lists of a purgatory: key -> the operations that watch it. Other keys have no list.

    Watching and unwatching cost O(1) for each key of the operation, however long the watch lists are and
    wherever in them the operation is. (A dict of operations for each key looks simpler. But after n deletions
    at its head every look at its first entry costs O(n). A linked node for each operation and key costs 80
    bytes, and this costs about 20.)

    Most keys have one watcher. Such an operation is in the table itself, without a list. The second watcher
    of a key makes a list of chunks, which remains until the last watcher leaves.

    An operation records in its own `_watched` where it is. For each of its keys that is the key itself, while
    it is the only watcher, or the chunk that holds it. The record is a tuple. For a single chunk it is the
    chunk itself, because a tuple takes 48 bytes and is one more object for the garbage collector.
    """

    __slots__ = ("_table", "watched")

    def __init__(self) -> None:
        # The value is the only operation on the key, or the first chunk of its list.
        self._table: dict[Hashable, Operation | Chunk] = {}
        # Operation-key pairs.
        self.watched = 0

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._table

    def watched_keys(self) -> list[Hashable]:
        """The keys that have watchers now."""
        return list(self._table)

    def on(self, key: Hashable) -> Operation | Chunk | None:
        """The only operation that watches `key`, or the first chunk of its list, or None."""
        return self._table.get(key)

    def some_keys(self, limit: int) -> list[Hashable]:
        """At most `limit` of the keys. Where there are more, half are the oldest and half are the newest."""
        if len(self._table) <= limit:
            return list(self._table)
        late = limit // 2
        return [*islice(self._table, limit - late), *islice(reversed(self._table), late)]

    def watching(self, key: Hashable, limit: int | None = None) -> list[Operation]:
        """The operations that watch `key`, in order. A `limit` gives the first so many of them."""
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
        """How many operations watch `key`. Counting stops at `limit` or a little above it."""
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
        """All operations, each once, in the order of the keys."""
        return [
            operation
            for key in self.watched_keys()
            for operation in self.watching(key)
            if keys_at(operation._watched)[0] is key
        ]

    def watch(self, operation: Operation, keys: tuple[Hashable, ...]) -> None:
        """Append `operation` to the watch list of each of `keys`. A key named twice is watched once.

        A key whose comparison raises lets the exception through, and then the operation is on no list.
        """
        several = len(keys) > 1
        # With the comparison in the `if`, mypy narrows the tuple's type and mypyc copies the tuple.
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
            # It is the only watcher of each key. The keys as given are the record.
            operation._watched = keys
        elif len(places) == 1 and isinstance(places[0], Chunk):
            operation._watched = places[0]
        else:
            operation._watched = tuple(places)

    def _place(self, operation: Operation, key: Hashable) -> object:
        """Append it to one watch list. Returns the entry for its record, or _TWICE for a key named before."""
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
            # The key object of the first chunk, so that equal key objects do not each stay alive.
            chunk = Chunk(first.key)
            chunk.previous = last
            last.following = chunk
            first.previous = chunk
        chunk.operations.append(operation)
        self.watched += 1
        return chunk

    def _list_of(self, alone: Operation, key: Hashable) -> Chunk:
        """Make a list for `key`, whose only watcher until now is `alone`."""
        places: list[object] = list(alone._watched)
        if len(places) > CHUNK_LENGTH:
            self._list_everywhere(alone, places)
            return cast(Chunk, self._table[key])
        # Find the entry of this key in its record, by the rules of a dict.
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
        """Make lists for all its keys at once, because one search for each shared key would be quadratic."""
        try:
            for index, place in enumerate(places):
                if not isinstance(place, Chunk):
                    chunk = Chunk(place)
                    chunk.operations.append(alone)
                    self._table[place] = chunk
                    places[index] = chunk
        finally:
            # Also when a comparison raises: the keys before that one have lists now.
            alone._watched = tuple(places)

    def unwatch(self, operation: Operation) -> None:
        """Remove `operation` from all its watch lists. Its `_watched` is then the tuple of its keys."""
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
        # By identity, because a user's class may define any equality.
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
        # The chunk whose `previous` was this one: the next chunk, or the first one, which links to the last.
        end = cast(Chunk, first) if following is None else following
        end.previous = None if previous is end else previous
        # No backward link, or a walk on an empty chunk would keep the chunks before it alive.
        chunk.previous = None

    def _check(self) -> None:
        """Raise AssertionError where an invariant does not hold. O(operation-key pairs). For tests."""
        watched = 0
        for key, place in self._table.items():
            watchers = self.watching(key)
            watched += len(watchers)
            for operation in watchers:
                assert key in keys_at(operation._watched), "an operation knows the keys that it watches"
            numbers = [operation._parked for operation in watchers]
            assert numbers == sorted(numbers), "the watchers of a key are in the order of parking"
            if isinstance(place, Chunk):
                _check_list(place)
        assert watched == self.watched, "the count of operation-key pairs is right"


def _check_list(first: Chunk) -> None:
    last = first
    while True:
        assert 0 < len(last.operations) <= CHUNK_LENGTH, "an empty chunk leaves the list"
        if last.following is None:
            break
        assert last.following.previous is last, "the links agree in both directions"
        last = last.following
    assert first.previous is (None if last is first else last), "the first chunk links to the last"


# The answer of `_place` for a key that was named before.
_TWICE: Final = object()


def keys_at(places: object) -> tuple[Hashable, ...]:
    """The keys in the record that a pending operation has in its `_watched`."""
    if isinstance(places, Chunk):
        return (places.key,)
    every = cast("tuple[Hashable, ...]", places)
    return tuple([place.key if isinstance(place, Chunk) else place for place in every])


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
