"""A million timeouts due at the same instant: for how long the loop is held, and by whom."""

from __future__ import annotations

from benchmarks.constructs import Construct, Key, Tally
from benchmarks.constructs.callbacks import TimedCallback
from benchmarks.constructs.purgatory_waits import PurgatoryCallback
from benchmarks.expiring import Collector, Expiring
from benchmarks.park_and_complete import one_key_targets
from benchmarks.question import Column, Contender, Question, Sample, Table

WAITS = 1_000_000


def one_instant(loop: str) -> Question:
    """The question."""
    targets = one_key_targets(WAITS)
    offsets = [0.0] * WAITS

    def contender(construct: type[Construct[Key]], collector: Collector) -> Contender:
        expiring = Expiring(construct, targets, offsets, collector)
        return Contender(collector.value, construct.name, lambda: measure(loop, expiring))

    return Question(
        name="one-instant",
        summary=f"{WAITS:,} timeouts due at one instant",
        contenders=(
            contender(PurgatoryCallback, Collector.ON),
            contender(TimedCallback, Collector.ON),
            contender(PurgatoryCallback, Collector.FROZEN),
            contender(PurgatoryCallback, Collector.OFF),
        ),
        tables=(
            Table(
                title=f"{WAITS:,} timeouts due at one instant: worst stall of the loop, milliseconds",
                columns=(
                    Column("stall_apart_ms", "but collector"),
                    Column("stall_ms", "all", spread=False),
                    Column("stall_busy_ms", "working"),
                    Column("drain_us", "us per timeout"),
                ),
                note="Of a task that beats each millisecond; 'but collector' leaves out its pauses. "
                "'Working' is the most processor time that the loop itself used between two beats: what is "
                "above that, the machine spent on something else.",
            ),
            Table(
                title="The collector's own pauses, milliseconds",
                columns=(
                    Column("pause_longest_ms", "longest"),
                    Column("pause_total_ms", "in total"),
                    Column("collection_ms", "gc.collect() before"),
                ),
                note="While they expired; and before, a full collection with all of them pending, which "
                "without gc.freeze() may happen at any time.",
            ),
        ),
        patience=22.0,
    )


def measure(loop: str, expiring: Expiring) -> Sample:
    """Stalls and pauses in milliseconds, the time to drain in microseconds per timeout."""
    expiration = expiring.expire(loop, lambda _: Tally())
    heartbeat, pauses = expiration.heartbeat, expiration.pauses
    sample = {
        "stall_ms": heartbeat.worst * 1e3,
        "stall_apart_ms": heartbeat.worst_apart * 1e3,
        "stall_busy_ms": heartbeat.worst_busy * 1e3,
        "drain_us": expiration.seconds / WAITS * 1e6,
        "pause_longest_ms": pauses.longest * 1e3,
        "pause_total_ms": pauses.total * 1e3,
    }
    if expiration.collection is not None:
        sample["collection_ms"] = expiration.collection * 1e3
    return sample
