"""Layer 3: key -> the operations that watch it, first come first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Final, cast, final

if TYPE_CHECKING:
    from purgatory.operation import Operation

# Long enough that a busy key's list costs little more than one pointer an operation, short enough that
# finding one of them in it is nothing. Of 4, 8, 16, 32 and 64, see benchmarks/watch_lists.py.
STRETCH_LENGTH: Final = 16


@final
class Stretch:
    """A stretch of one key's watch list: up to STRETCH_LENGTH operations, and its neighbours.

    A stretch that has become empty leaves the list, but goes on pointing forward. So a walk that stands on
    it finds its way, whatever was taken away meanwhile, here or ahead.
    """

    __slots__ = ("following", "key", "operations", "previous")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.operations: list[Operation] = []
        # Of a key's first stretch the last one, None while it is the only one.
        self.previous: Stretch | None = None
        self.following: Stretch | None = None


@final
class Watchers:
    """The watch lists of a purgatory: key -> its first stretch. A key nobody watches is not in it.

    Watching and unwatching cost O(1) for each key of the operation, whatever the length of the lists and
    wherever in them the operation stands. (A dict of operations per key looks simpler; but after n deletions
    at its head every look at its first entry costs O(n), and a linked node for each operation and key costs
    80 bytes where this costs about 20.)
    """

    __slots__ = ("_lists", "watched")

    def __init__(self) -> None:
        self._lists: dict[Hashable, Stretch] = {}
        # Operation-key pairs.
        self.watched = 0

    def __len__(self) -> int:
        return len(self._lists)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lists

    def watched_keys(self) -> list[Hashable]:
        """The keys somebody watches, as they are now."""
        return list(self._lists)

    def first(self, key: Hashable) -> Stretch | None:
        """Where the key's watch list begins; None when nobody watches it."""
        return self._lists.get(key)

    def watching(self, key: Hashable) -> list[Operation]:
        """The operations that watch `key`, first come first."""
        found: list[Operation] = []
        stretch = self._lists.get(key)
        while stretch is not None:
            found += stretch.operations
            stretch = stretch.following
        return found

    def operations(self) -> list[Operation]:
        """All operations, each once: at the first of its keys."""
        return [
            operation
            for key in self.watched_keys()
            for operation in self.watching(key)
            if operation.keys[0] is key
        ]

    def watch(self, operation: Operation, key: Hashable) -> Stretch:
        """Put `operation` at the end of the key's list; the stretch that it is on from now on."""
        first = self._lists.get(key)
        if first is None:
            stretch = self._lists[key] = Stretch(key)
        else:
            stretch = first.previous or first
            if len(stretch.operations) >= STRETCH_LENGTH:
                last = stretch
                # The first one's key object, so that equal keys do not each keep their own alive.
                stretch = Stretch(first.key)
                stretch.previous = last
                last.following = stretch
                first.previous = stretch
        stretch.operations.append(operation)
        self.watched += 1
        return stretch

    def watch_all(self, operation: Operation, keys: tuple[Hashable, ...]) -> tuple[Stretch, ...]:
        """`watch` each of `keys`, or none when one of them cannot be compared with those in the table."""
        stretches: list[Stretch] = []
        try:
            for key in keys:
                stretches.append(self.watch(operation, key))
        except BaseException:
            for stretch in stretches:
                self.unwatch(operation, stretch)
            raise
        return tuple(stretches)

    def unwatch(self, operation: Operation, stretch: Stretch) -> None:
        """Take `operation` off `stretch`, which `watch` returned."""
        operations = stretch.operations
        # By identity: users' classes may define what equality they like.
        index = 0
        while operations[index] is not operation:
            index += 1
        del operations[index]
        self.watched -= 1
        if not operations:
            self._drop(stretch)

    def _drop(self, stretch: Stretch) -> None:
        key, following, previous = stretch.key, stretch.following, stretch.previous
        first = self._lists[key]
        if stretch is not first:
            cast(Stretch, previous).following = following
        elif following is not None:
            self._lists[key] = following
        else:
            del self._lists[key]
            return
        # Whose `previous` led to it: the one behind it or, from the first, its end of the list.
        end = first if following is None else following
        end.previous = None if previous is end else previous
        # Nothing leads backward from it, or a walk could keep a whole list alive from behind.
        stretch.previous = None


def distinct_keys(keys: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The keys, each once, in order, and all hashable."""
    if type(keys) is tuple:
        given = keys
    elif isinstance(keys, (str, bytes)):
        raise TypeError(f"keys must be a collection of keys, not {keys!r}: did you mean [{keys!r}]?")
    else:
        given = tuple(keys)
    if len(given) == 1:
        hash(given[0])
        return given
    if not given:
        raise ValueError("an operation must watch at least one key")
    return tuple(dict.fromkeys(given))
