"""A store against what it has promised: Hypothesis chooses the calls, the crashes and what survives them."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from random import Random
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatory.delayed.storage.requests import StoreFailed
from tests.delayed.storage.simulated_disk import EVERYTHING, NOTHING, PowerCut, SimulatedDisk, Survival
from tests.delayed.storage.store_run import NOW, StoreRun

DUES = st.sampled_from([NOW - 10_000, NOW + 400, NOW + 5_000, NOW + 5_001, NOW + 60_000, NOW + 7_200_000])
NAMES = st.sampled_from([None, None, "a", "b", "ß"])
SIZES = st.sampled_from([0, 1, 30, 700, 5_000])


class StoreMachine(RuleBasedStateMachine):
    """Each call may find the disk full, fail to sync, or lose the power. Then the next rule recovers."""

    def __init__(self) -> None:
        super().__init__()
        self.patched = ExitStack()
        self.patched.enter_context(patch("secrets.randbits", Random(0).getrandbits))
        self.patched.enter_context(patch("secrets.token_bytes", Random(0).randbytes))
        # Some logs are long.
        self.patched.enter_context(patch("purgatory.delayed.storage.store._LONG", 1_500))
        # Ids are compacted again and again.
        self.patched.enter_context(patch("purgatory.delayed.storage.ids._REWRITE", 100))
        self.run = StoreRun(SimulatedDisk())
        self.payloads = 0
        # A sync has failed, or the power is off.
        self.ended = False

    @initialize()
    def open(self) -> None:
        self.run.open()

    def teardown(self) -> None:
        self.patched.close()

    # Calls

    @precondition(lambda self: not self.ended)
    @rule(due=DUES, name=NAMES, size=SIZES, soon=st.booleans())
    def put(self, due: int, name: str | None, size: int, soon: bool) -> None:
        self.payloads += 1
        payload = b"%d" % self.payloads + bytes(size)
        self.attempt(lambda: self.run.put(due, payload, name, soon=soon))

    @precondition(lambda self: not self.ended and any(c.name for c in self.run.promised.values()))
    @rule(data=st.data())
    def put_again(self, data: st.DataObject) -> None:
        named = [content for content in self.run.promised.values() if content.name]
        due, name, payload = data.draw(st.sampled_from(named))
        self.attempt(lambda: self.run.put(due, payload, name))

    @precondition(lambda self: not self.ended and self.run.promised)
    @rule(data=st.data(), cancel=st.booleans())
    def end(self, data: st.DataObject, cancel: bool) -> None:
        token = data.draw(st.sampled_from(sorted(self.run.promised)))
        self.attempt(lambda: self.run.cancel(token) if cancel else self.run.deliver(token))

    @precondition(lambda self: not self.ended and self.run.cancelled)
    @rule(data=st.data())
    def cancel_again(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(sorted(self.run.cancelled)))
        self.attempt(lambda: self.run.cancel_again(token))

    @precondition(lambda self: not self.ended)
    @rule()
    def spread(self) -> None:
        self.attempt(self.run.spread)

    @precondition(lambda self: not self.ended)
    @rule()
    def spread_soon(self) -> None:
        self.attempt(self.run.spread_soon)

    @precondition(lambda self: not self.ended)
    @rule()
    def remove(self) -> None:
        self.attempt(self.run.remove)

    @precondition(lambda self: not (self.ended or self.run.doubtful))
    @rule()
    def deliveries(self) -> None:
        self.attempt(self.run.check_deliveries)

    def attempt(self, call: object) -> None:
        assert callable(call)
        try:
            with suppress(OSError):
                call()
        except (StoreFailed, PowerCut):
            self.ended = True

    # Faults

    @rule(days=st.sampled_from([-2, 0, 2]))
    def set_the_clock(self, days: int) -> None:
        self.run.set_the_clock(NOW + days * 86_400_000)

    @rule(room=st.integers(0, 500))
    def fill_the_disk(self, room: int) -> None:
        disk = self.run.disk
        disk.capacity = None
        disk.capacity = disk.used + room

    @rule()
    def make_room(self) -> None:
        self.run.disk.capacity = None

    @rule(operation=st.sampled_from(["sync", "sync_directory"]), after=st.integers(0, 5))
    def let_a_sync_fail(self, operation: str, after: int) -> None:
        self.run.disk.fail(operation, after=after)

    @rule(after=st.integers(1, 30))
    def let_the_power_go_off(self, after: int) -> None:
        self.run.disk.cut_power_at = self.run.disk.operations + after

    # Opening

    @precondition(lambda self: not self.ended)
    @rule()
    def open_again(self) -> None:
        self.run.disk.capacity = None
        self.attempt(self.close_and_open)
        if not self.ended:
            self.run.check()

    def close_and_open(self) -> None:
        self.run.close()
        self.run.open()

    @rule(
        random=st.randoms(use_true_random=False),
        chance=st.sampled_from([EVERYTHING, NOTHING, None]),
        again=st.lists(st.integers(1, 40), max_size=2),
    )
    def crash(self, random: Random, chance: Survival | None, again: list[int]) -> None:
        survival = chance or Survival(random)
        for operation in again:
            self.run = self.run.after_power_cut(survival)
            self.run.disk.cut_power_at = operation
            with suppress(PowerCut):
                self.run.open()
        self.run = self.run.after_power_cut(survival)
        self.run.open()
        self.run.check()
        self.ended = False

    @invariant()
    def no_file_stays_open(self) -> None:
        # The log's last segment is open.
        assert self.run.disk.opened <= 1


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=40, deadline=None
)
