"""A program that test_instructions.py runs under valgrind: ``python -m tests.core.instructions``.

It makes a mark before and after each act. What is between two acts has a count, too.
"""

from __future__ import annotations

from benchmarks.harness.instructions import mark
from purgatory import DelayedOperation, Purgatory
from purgatory.testing import ManualClock


class Ready(DelayedOperation[None]):
    __slots__ = ("ready",)

    def __init__(self) -> None:
        super().__init__(30.0)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass


def round_trips(held: Purgatory, keys: tuple[str, ...], times: int) -> None:
    for _ in range(times):
        operation = held.try_complete_else_watch(Ready(), keys)
        operation.ready = True
        held.check_and_complete("a")


def one_key(held: Purgatory, times: int) -> None:
    round_trips(held, ("a",), times)


def three_keys(held: Purgatory, times: int) -> None:
    round_trips(held, ("a", "b", "c"), times)


def shared_key(held: Purgatory, times: int) -> None:
    held.try_complete_else_watch(Ready(), ("a",))
    for _ in range(times):
        held.try_complete_else_watch(Ready(), ("a",)).force_complete()


def heartbeats(held: Purgatory, times: int) -> None:
    operation = held.try_complete_else_watch(Ready(), ("a",))
    for _ in range(times):
        operation.reschedule(30.0)


ACTS = {act.__name__: act for act in (one_key, three_keys, shared_key, heartbeats)}
# The first ones make what the others use again.
BEFORE, TIMES = 500, 2_000


def with_free_blocks() -> list[object]:
    """Objects of each size for which the interpreter has pools of blocks, and as many free blocks among them.

    An act that takes the only free block of a pool and gives it back makes and frees a pool each time.
    Whether it does would depend on all that was allocated before.
    """
    blocks: list[object] = [float(number) for number in range(2_000)]
    blocks += [bytes(size) for size in range(8, 480, 16) for _ in range(2_000)]
    return blocks[::2]


if __name__ == "__main__":
    held = with_free_blocks()
    for act in ACTS.values():
        purgatory = ManualClock().purgatory()
        # It keeps the timer armed.
        purgatory.try_complete_else_watch(Ready(), ("nobody else's",))
        act(purgatory, BEFORE)
        mark()
        act(purgatory, TIMES)
        mark()
