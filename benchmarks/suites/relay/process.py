"""What a relay costs one process, without the transport: signals, and a resync after a gap.

The texts go straight from one relay to another. A transport's own cost comes on top of that.
"""

import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from benchmarks.harness.benchmark import Parts, Sample, Setting, Table, benchmark, medians, spreads
from benchmarks.harness.event_loop import CollectorPauses, CollectorSetting, Heartbeat, run, turns
from purgatory import DelayedOperation, Purgatory
from purgatory.relay import Key, Relay
from purgatory.relay.keys import encoded
from purgatory.relay.texts import keys_texts
from purgatory.testing import InProcessBroker

# Keys that the process watches while signals of others arrive.
WATCHED = 1_000
# The longest message of a transport, and the keys in a flush.
MAX_BYTES, FLUSHED = 8_000, 500

Act = Callable[[Relay, list[Key]], Awaitable[float]]


class Wait(DelayedOperation[None]):
    """An operation that looks at a version of its key."""

    __slots__ = ("key", "versions")

    def __init__(self, versions: dict[Key, int], key: Key) -> None:
        super().__init__(30.0)
        self.versions, self.key = versions, key

    def try_complete(self) -> bool:
        return self.versions.get(self.key, 0) > 0 and self.force_complete()


@benchmark("relay-signals", "cost of {n:,} signals in one process", (100_000,))
def relay_signals(setting: Setting) -> Parts:
    """The first size is the number of signals."""
    signals = setting.sizes[0]
    yield Table(
        "Processor time of a signal",
        spreads(us="us"),
        f"{signals:,} signals of as many keys; {WATCHED:,} other keys are watched. Heard: {FLUSHED} keys in "
        "a flush, JSON of at most 8,000 bytes, decoded and looked up. Collector off.",
    )
    yield from setting.case("signals", "purgatory: heard, nobody waits", partial(measure, setting, heard))
    yield from setting.case("signals", "purgatory: given, nobody waits", partial(measure, setting, given))


@benchmark("relay-resync", "a resync of {n:,} watched keys", (100_000,), time_limit=60.0)
def relay_resync(setting: Setting) -> Parts:
    """The first size is the number of watched keys."""
    yield Table(
        "All watched keys are refreshed and checked after a gap",
        spreads(seconds="s", us="us of processor a key", stall_ms="worst stall, ms")
        + medians(calls="calls of refresh"),
        "A refresh copies the values from a dict. Collector on. The stall is without the collector's pauses.",
    )
    yield from setting.case("keys", "purgatory", partial(run, setting.loop, resync, setting.sizes[0]))


def measure(setting: Setting, act: Act) -> Sample:
    """Microseconds for a signal."""
    with CollectorSetting.OFF.applied():
        return {"us": run(setting.loop, with_a_relay, act, setting.sizes[0])}


async def with_a_relay(act: Act, signals: int) -> float:
    async with Purgatory() as purgatory, Relay(purgatory, InProcessBroker().transport()) as relay:
        for key in range(WATCHED):
            purgatory.try_complete_else_watch(Wait({}, key), (key,))
        await settled(relay)
        return await act(relay, [f"topic {number}" for number in range(signals)]) / signals * 1e6


async def heard(relay: Relay, keys: list[Key]) -> float:
    """Processor seconds for texts of other processes."""
    texts: list[str] = []
    for first in range(0, len(keys), FLUSHED):
        flushed = [encoded(key) for key in keys[first : first + FLUSHED]]
        texts += keys_texts("0123456789abcdef", flushed, MAX_BYTES) or []
    start = time.process_time()
    for text in texts:
        relay._link.received(text)
    return time.process_time() - start


async def given(relay: Relay, keys: list[Key]) -> float:
    """Processor seconds until the transport has taken all, with a turn of the loop after each flush."""
    start = time.process_time()
    for number, key in enumerate(keys):
        relay.signal(key)
        if not number % FLUSHED:
            await turns(1)
    await relay.signalled(keys[-1])
    return time.process_time() - start


async def settled(relay: Relay) -> None:
    """Return when the subscriptions are confirmed and nothing waits for a refresh."""
    while relay.statistics().waiting or not all(shard.confirmed for shard in relay._interest.wanted()):
        await turns(1)


async def resync(keys: int) -> Sample:
    """Seconds from a gap until every key is refreshed, and the worst stall meanwhile."""
    stored: dict[Key, int] = {}
    versions: dict[Key, int] = {}

    async def load(batch: Collection[Key]) -> None:
        versions.update({key: stored.get(key, 0) for key in batch})

    purgatory, broker = Purgatory(), InProcessBroker()
    relay = Relay(purgatory, broker.transport(), refresh=load)
    async with purgatory:
        async with relay:
            for key in range(keys):
                purgatory.try_complete_else_watch(Wait(versions, key), (key,))
            await settled(relay)
            before = relay.statistics()
            pauses, heartbeat = CollectorPauses(), Heartbeat()
            with pauses.watched():
                start, begun = time.perf_counter(), time.process_time()
                broker.overflow()
                await heartbeat.until(lambda: relay.statistics().refreshed >= before.refreshed + keys, pauses)
                seconds, spent = time.perf_counter() - start, time.process_time() - begun
            after = relay.statistics()
        await purgatory.aclose(cancel_pending=True)
    return {
        "seconds": seconds,
        "us": spent / keys * 1e6,
        "stall_ms": heartbeat.worst_apart * 1e3,
        "calls": after.refreshes - before.refreshes,
    }
