"""Layer 3: the watch list of one key that several operations watch, as an unrolled linked list."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, cast, final

from purgatory._core.operation import Operation
from purgatory._core.outcome import PENDING

# Long enough that the watch list of a busy key costs little more than one pointer for each operation, and
# short enough that a search of a chunk is cheap. 4, 8, 16, 32 and 64 were compared.
CHUNK_LENGTH: Final = 16


@final
class Chunk:
    """A chunk of one key's watch list: up to CHUNK_LENGTH operations, in the order in which they came.

    The first chunk stands for the list, and stays until the list is empty. Another chunk leaves the list when
    it is empty, but keeps its forward link. So a walk that has reached it finds the rest of the list.
    """

    __slots__ = ("first", "following", "key", "keys", "operations", "previous")

    def __init__(self, key: Hashable, keys: tuple[Hashable, ...] | None, first: Chunk | None) -> None:
        self.key = key
        # The key as the tuple of keys of an operation that has left. All operations of the list share it.
        self.keys = keys
        # The first chunk of the list. None for that one itself, because it would keep itself alive.
        self.first = first
        self.operations: list[Operation] = []
        # For the first chunk this is the last chunk, or None while there is only one.
        self.previous: Chunk | None = None
        self.following: Chunk | None = None

    def append(self, operation: Operation) -> Chunk | None:
        """Append `operation` to this list. Returns its chunk, or None when it is the last one already."""
        last = self.previous or self
        # Any, because compiled code checks the type of what it takes out of a list of operations.
        operations: list[Any] = last.operations
        if operations and operations[-1] is operation:
            return None
        # Numbers grow in a chunk. So an operation that has one, and watches another key now, begins a chunk.
        if len(operations) < CHUNK_LENGTH and not operation._parked:
            operations.append(operation)
            return last
        # The key object of the first chunk, so that equal key objects do not each stay alive.
        chunk = Chunk(self.key, self.keys, self)
        chunk.operations.append(operation)
        chunk.previous = last
        last.following = chunk
        self.previous = chunk
        return chunk

    def remove(self, operation: Operation) -> Chunk | None:
        """Remove `operation` from this chunk. Returns the first chunk of the list when the list is empty now.

        Raises IndexError when the operation is not in this chunk.
        """
        operations: list[Any] = self.operations
        # By identity, because a user's class may define any equality.
        index = 0
        while operations[index] is not operation:
            index += 1
        operations.pop(index)
        if operations:
            return None
        first = self.first or self
        if first is not self:
            self._leave(first)
        return None if first.operations or first.following is not None else first

    def _leave(self, first: Chunk) -> None:
        previous, following = cast(Chunk, self.previous), self.following
        previous.following = following
        if following is not None:
            following.previous = previous
        else:
            # The first chunk links to the last one.
            first.previous = None if previous is first else previous
        # No backward link, or a walk on an empty chunk would keep the chunks before it alive.
        self.previous = None

    def count(self, limit: int) -> int:
        """How many operations the list has from here on. Counting stops at `limit` or a little above it."""
        count = 0
        chunk: Chunk | None = self
        while chunk is not None and count < limit:
            count += len(chunk.operations)
            chunk = chunk.following
        return count


def operations_at(place: Any, limit: int | None = None) -> list[Operation]:
    """The pending operations at one place of the table, in order, the first `limit` of them.

    The place is the only operation of a key, or the first chunk of its list, or None. The entry of a key that
    could not be looked up may also hold operations that have ended.
    """
    found: list[Operation] = []
    if isinstance(place, Chunk):
        chunk: Chunk | None = place
        while chunk is not None and (limit is None or len(found) < limit):
            found += [each for each in chunk.operations if each._state is PENDING]
            chunk = chunk.following
        if limit is not None:
            del found[limit:]
    elif place is not None and place._state is PENDING:
        found.append(place)
    return found
