"""Hypothesis looks for an interleaving in which a wake-up is lost.

Three processes park, write and signal while connections are cut, publications vanish, the server stops or
freezes, and refreshes are slow or fail. The model is the shared state alone: a waiter whose condition holds
there is woken within the promise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from purgatory.relay import Key
from purgatory.testing import InProcessBroker, VirtualTimeLoop
from tests.core.invariants import check_watchers
from tests.relay.processes import Process, State, Version

HEARTBEAT = 9.0
ANTI_ENTROPY = 300.0
# The most that one way to the server takes, and a refresh. Each may have to wait for the one before it.
LATENCY, SLOWNESS = 0.5, 1.0
WAKE = 4 * LATENCY + 2 * SLOWNESS + 0.1
# Longer than any pause between two attempts, with the attempt itself.
ATTEMPT = 5.0 + 4 * LATENCY
# What may pass from the end of a trouble until signals are heard again, and what was missed is refreshed.
REPAIR = HEARTBEAT + ATTEMPT + WAKE

# Two keys are in one shard.
KEYS: tuple[Key, ...] = ("tea", 211, ("job", 3), b"\x00")
PROCESSES = st.integers(0, 2)


class Waiter:
    def __init__(self, operation: Version) -> None:
        self.operation = operation
        # Since when its condition holds in the shared state, and is signalled.
        self.since: float | None = None


class RelayMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.loop.set_exception_handler(lambda _, context: self.failures.append(context))
        self.failures: list[object] = []
        self.broker = InProcessBroker(latency=0.1, max_bytes=200)
        self.state = State()
        self.processes = [
            Process(
                self.broker,
                self.state,
                heartbeat=HEARTBEAT,
                anti_entropy=ANTI_ENTROPY,
                linger=4,
                max_batch=2,
                max_keys=2,
            )
            for _ in range(3)
        ]
        self.waiters: list[Waiter] = []
        # When something was last wrong that a relay detects, and when it was wrong in a way that none does.
        self.troubled = self.unnoticed = -1_000.0
        # When a refresh last failed.
        self.failed = -1_000.0
        self.down = False
        self.run(0)
        for process in self.processes:
            self.loop.run_until_complete(process.__aenter__())

    def run(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    @property
    def now(self) -> float:
        return self.loop.time()

    @property
    def failing(self) -> bool:
        return any(process.failure is not None for process in self.processes)

    @rule(where=PROCESSES, key=st.sampled_from(KEYS), ahead=st.integers(0, 2))
    def park(self, where: int, key: Key, ahead: int) -> None:
        operation = self.processes[where].park(key, self.state[key] + ahead)
        self.waiters.append(Waiter(operation))

    @rule(where=PROCESSES, key=st.sampled_from(KEYS))
    def write(self, where: int, key: Key) -> None:
        self.processes[where].write(key)
        # A later signal makes up for an earlier one, but the promise is of the first.

    @precondition(lambda self: self.waiters)
    @rule(number=st.integers(0, 1_000))
    def withdraw(self, number: int) -> None:
        self.waiters.pop(number % len(self.waiters)).operation.cancel()

    @rule(seconds=st.sampled_from([0, 0.05, 0.2, 0.5, 1, 3, 10, 30, 60]))
    def advance(self, seconds: float) -> None:
        self.run(seconds)

    @rule(latency=st.sampled_from([0, 0.1, LATENCY]))
    def change_the_latency(self, latency: float) -> None:
        self.broker.latency = latency

    @rule(where=PROCESSES, slowness=st.sampled_from([0, 0.3, SLOWNESS]))
    def change_the_slowness(self, where: int, slowness: float) -> None:
        self.processes[where].slowness = slowness

    @rule(where=PROCESSES)
    def fail_or_recover(self, where: int) -> None:
        process = self.processes[where]
        process.failure = OSError("away") if process.failure is None else None

    @rule(what=st.sampled_from(["cut", "silence", "overflow"]))
    def strike(self, what: str) -> None:
        getattr(self.broker, what)()
        self.troubled = self.now

    @rule(what=st.sampled_from(["stop", "freeze"]))
    def bring_down(self, what: str) -> None:
        getattr(self.broker, what)()
        self.down = True

    @rule()
    def bring_up(self) -> None:
        self.broker.start()
        self.down = False

    @rule()
    def lose_or_carry(self) -> None:
        self.broker.losing = not self.broker.losing

    # The rules above come upon these interleavings too rarely.

    # The last of these writes is heard before the confirmation, the others are lost.
    @rule(where=PROCESSES, key=st.sampled_from(KEYS), seconds=st.sampled_from([0.01, 1.1, 1.3, 1.8]))
    def write_between_a_loss_and_the_next_confirmation(self, where: int, key: Key, seconds: float) -> None:
        self.park_in_peace(where, key, 1)
        self.strike("cut")
        # Its connection is there after at most 1.05 s, the subscription after 1.55 s, the confirmation after
        # 2.05 s. The signal overtakes them.
        self.change_the_latency(LATENCY)
        self.run(seconds)
        self.change_the_latency(0)
        self.write_and_wait((where + 1) % 3, key, REPAIR)

    @rule(where=PROCESSES, writer=PROCESSES, key=st.sampled_from(KEYS))
    def write_during_a_refresh(self, where: int, writer: int, key: Key) -> None:
        self.park_in_peace(where, key, 2)
        self.change_the_slowness(where, SLOWNESS)
        self.write(writer, key)
        late = self.now + WAKE
        while not self.processes[where].concurrent:
            self.run(0.01)
            assert self.now < late
        # It reads the state in its middle.
        self.run(0.6 * SLOWNESS)
        self.write_and_wait(writer, key, WAKE)

    @rule(where=PROCESSES, key=st.sampled_from(KEYS))
    def lose_a_single_message(self, where: int, key: Key) -> None:
        self.park_in_peace(where, key, 1)
        self.lose_or_carry()
        self.write_and_wait((where + 1) % 3, key, 0.5)
        self.lose_or_carry()
        self.run(ANTI_ENTROPY + WAKE)
        self.nobody_waits_longer_than_promised()

    def park_in_peace(self, where: int, key: Key, ahead: int) -> None:
        """Park an operation. All is repaired, the servers answer, and the key is subscribed."""
        self.recover()
        self.change_the_latency(0.1)
        for process in self.processes:
            process.slowness = 0
        self.park(where, key, ahead)
        self.run(REPAIR + ATTEMPT + WAKE)

    def write_and_wait(self, where: int, key: Key, seconds: float) -> None:
        self.write(where, key)
        self.nobody_waits_longer_than_promised()
        self.run(seconds)
        self.nobody_waits_longer_than_promised()

    def recover(self) -> None:
        self.broker.start()
        self.broker.losing = self.down = False
        for process in self.processes:
            process.failure = None

    @invariant()
    def nobody_waits_longer_than_promised(self) -> None:
        if self.down:
            self.troubled = self.now
        if self.broker.losing:
            self.troubled = self.unnoticed = self.now
        if self.failing:
            self.failed = self.now
        for waiter in list(self.overdue()):
            raise AssertionError(f"{waiter.operation.key!r} holds since {waiter.since}, and it is {self.now}")

    def overdue(self) -> Iterator[Waiter]:
        self.waiters = [waiter for waiter in self.waiters if not waiter.operation.done]
        for waiter in self.waiters:
            if self.state[waiter.operation.key] < waiter.operation.version:
                continue
            if waiter.since is None:
                waiter.since = self.now
            since = max(waiter.since, self.failed + ATTEMPT)
            if self.now > since + ANTI_ENTROPY + WAKE:
                yield waiter
            # A publication that vanished is nobody's fault, until the anti-entropy.
            noticed = waiter.since > self.unnoticed + 2 * LATENCY
            if noticed and self.now > max(since + WAKE, self.troubled + REPAIR):
                yield waiter

    @invariant()
    def the_tables_are_right(self) -> None:
        for process in self.processes:
            process.relay._interest._check()
            check_watchers(process.purgatory._engine.watchers)
        assert self.failures == []

    def teardown(self) -> None:
        self.recover()
        try:
            for seconds in (WAKE, REPAIR, ANTI_ENTROPY + ATTEMPT, 2 * WAKE):
                self.nobody_waits_longer_than_promised()
                self.run(seconds)
            self.nobody_waits_longer_than_promised()
            assert not any(self.state[w.operation.key] >= w.operation.version for w in self.waiters)
        finally:
            for process in self.processes:
                self.loop.run_until_complete(process.__aexit__(None, None, None))
            self.loop.close()


TestRelayMachine = pytest.mark.usefixtures("untraced")(RelayMachine.TestCase)
TestRelayMachine.settings = settings(
    max_examples=max(10, settings().max_examples // 5),
    stateful_step_count=20,
    # A shorter example takes minutes to find, and the message names the key and the times.
    phases=set(Phase) - {Phase.shrink, Phase.explain},
)
