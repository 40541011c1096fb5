"""Keys that change, raise, or call back into the purgatory after they were watched. They harm only their own
operation's look-ups: it ends as any other, and everybody else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from purgatory import OperationState, OperationWithdrawn, Purgatory
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.core.keys import BadKey, Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns, raising

COMPLETED, EXPIRED, CANCELLED = OperationState.COMPLETED, OperationState.EXPIRED, OperationState.CANCELLED


def change_hash(key: Key) -> None:
    key.hashed += 1


def raise_in_hash(key: Key) -> None:
    key.hashing = raising(BadKey("hash"))


def raise_in_eq(key: Key) -> None:
    key.comparing = raising(BadKey("eq"))


def become_equal_to_the_neighbour(key: Key) -> None:
    key.name = "neighbour"


def become_equal_to_another(key: Key) -> None:
    key.name, key.hashed = "other", 8


SPOILINGS = [change_hash, raise_in_hash, raise_in_eq, become_equal_to_the_neighbour, become_equal_to_another]
ENDS = {
    "completes": COMPLETED,
    "is withdrawn": CANCELLED,
    "expires": EXPIRED,
    "is rescheduled to now": EXPIRED,
    "is closed": EXPIRED,
    "is closed by withdrawing": CANCELLED,
}
HOOKS = {
    COMPLETED: ["try_complete", "on_complete"],
    EXPIRED: ["try_complete", "on_complete", "on_expiration"],
    CANCELLED: ["try_complete"],
}
# Numbers, because the hash of a str differs from run to run, and a key with a new hash may be found by luck.
BESIDE = [1001, 1002]


class Scene:
    """A purgatory with an operation whose key is going to be bad, and two neighbours of it.

    The first neighbour's key has the same hash, and was there first. So a look-up of the bad key compares
    the two.
    """

    def __init__(self, shape: str) -> None:
        self.purgatory = Purgatory("held")
        self.elsewhere = Purgatory("elsewhere")
        for each in (self.purgatory, self.elsewhere):
            each.start()
        self.key = Key("bad", 7)
        self.neighbours = {key: self.park(Gate(), key) for key in (Key("neighbour", 7), Key("other", 8))}
        # The first watcher of a key stands in the table itself; a later one has a list.
        self.sharing = [self.park(Gate(), self.key) for _ in range(shape.count("shared"))]
        around = BESIDE if shape.startswith("several") else []
        self.gate = self.park(Gate(100), *around[:1], self.key, *around[1:])
        self.task = asyncio.ensure_future(self.outcome())

    def park(self, gate: Gate, *keys: object) -> Gate:
        return self.purgatory.try_complete_else_watch(gate, keys)

    async def outcome(self) -> str:
        return await self.gate

    async def end(self, how: str) -> None:
        if how == "completes":
            assert self.gate.force_complete()
        elif how == "is withdrawn":
            assert self.gate.cancel()
        elif how == "expires":
            await asyncio.sleep(101)
        elif how == "is rescheduled to now":
            assert self.gate.reschedule(0)
        else:
            await self.purgatory.aclose(cancel_pending=how == "is closed by withdrawing")

    async def close(self) -> None:
        await self.purgatory.aclose()
        await self.elsewhere.aclose()


@pytest.mark.parametrize("shape", ["alone", "several", "shared", "several shared"])
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("spoil", SPOILINGS)
async def test_an_operation_whose_key_has_gone_bad_ends_as_any_other(
    virtual_time: VirtualTimeLoop,
    reported: list[dict[str, Any]],
    spoil: Callable[[Key], None],
    how: str,
    shape: str,
) -> None:
    scene = Scene(shape)
    await a_few_turns()
    spoil(scene.key)
    await scene.end(how)
    state = ENDS[how]
    assert scene.gate.state is state
    assert scene.gate.ran == HOOKS[state]
    if state is CANCELLED:
        with pytest.raises(OperationWithdrawn):
            await scene.task
    else:
        assert await scene.task == "gate"
    # Another purgatory of the loop works.
    there = scene.elsewhere.try_complete_else_watch(Gate(), ["there"])
    there.opened = True
    assert scene.elsewhere.check_and_complete("there") == 1
    if not how.startswith("is closed"):
        figures = scene.purgatory.statistics()
        assert (figures.pending, figures.watched) == (2 + len(scene.sharing), 2 + len(scene.sharing))
        assert len(scene.purgatory.operations()) == figures.pending
        # It has left its good keys, and the bad key has taken nothing away from the neighbours.
        assert scene.purgatory.check_and_complete(BESIDE[0]) == 0
        for key, neighbour in scene.neighbours.items():
            assert not neighbour.done
            neighbour.opened = True
            assert scene.purgatory.check_and_complete(key) == 1
        for sharing in scene.sharing:
            assert sharing.force_complete()
        figures = scene.purgatory.statistics()
        assert (figures.pending, figures.watched) == (0, 0)
        # The entry of a key that could not be looked up stays until the purgatory is closed.
        assert figures.keys == len(scene.purgatory.watched_keys(9)) == (1 if reported else 0)
    await scene.close()
    assert nothing_is_left(scene.purgatory)
    for context in reported:
        assert context["message"].startswith("a key of <Gate")
        assert "<Key" in context["message"]
    # Only the last watcher of a key looks it up, and it may meet no other key of that hash then.
    looked_up = shape in ("alone", "several") and not how.startswith("is closed")
    if looked_up or spoil in (change_hash, raise_in_hash, become_equal_to_another):
        assert reported


@pytest.mark.parametrize("how", ENDS)
async def test_an_interrupt_in_a_keys_hash_gets_through_and_the_operation_ends_all_the_same(
    virtual_time: VirtualTimeLoop, reported: list[dict[str, Any]], how: str
) -> None:
    scene = Scene("several")
    await a_few_turns()
    scene.key.hashing = raising(Stop())
    if how == "expires":
        # The reaper is a task, and this goes through the loop.
        scene.gate.reschedule(None)
        with pytest.raises(Stop):
            scene.gate.run()
    else:
        with pytest.raises(Stop):
            await scene.end(how)
    state = ENDS[how]
    assert scene.gate.state is state
    await asyncio.wait([scene.task])
    assert scene.gate.ran == HOOKS[state]
    assert isinstance(scene.task.exception(), OperationWithdrawn) == (state is CANCELLED)
    await scene.close()
    assert nothing_is_left(scene.purgatory)
    assert reported == []


@pytest.mark.parametrize("spoil", SPOILINGS)
async def test_closing_ends_hundreds_of_operations_with_bad_keys_and_hundreds_of_others(
    virtual_time: VirtualTimeLoop, reported: list[dict[str, Any]], spoil: Callable[[Key], None]
) -> None:
    purgatory = Purgatory()
    purgatory.start()
    keys = [Key(f"{number}", number % 10) for number in range(200)]
    gates = [
        purgatory.try_complete_else_watch(Gate(60), [keys[number % 200], number, keys[number % 7]])
        for number in range(400)
    ]
    for key in keys[::2]:
        spoil(key)
    await asyncio.wait_for(purgatory.aclose(), 1)
    assert {gate.state for gate in gates} == {EXPIRED}
    assert {tuple(gate.ran) for gate in gates} == {tuple(HOOKS[EXPIRED])}
    assert nothing_is_left(purgatory)
    assert reported != []


@pytest.mark.parametrize("watchers", [1, 2])
@pytest.mark.parametrize("spoil", [change_hash, raise_in_hash, become_equal_to_another])
async def test_each_bad_key_leaves_one_entry_until_the_purgatory_is_closed(
    reported: list[dict[str, Any]], spoil: Callable[[Key], None], watchers: int
) -> None:
    async with Purgatory() as purgatory:
        # A number, as in BESIDE.
        stays = [purgatory.try_complete_else_watch(Gate(), [key]) for key in (3, Key("other", 8))]
        # Apart, so that none has the hash that another one has changed to.
        keys = [Key(str(number), 2 * number) for number in range(50, 250)]
        for one, other in zip(keys[::2], keys[1::2], strict=True):
            gates = [purgatory.try_complete_else_watch(Gate(5), [one, other]) for _ in range(watchers)]
            # The last one of a list looks its key up.
            for gate in gates[:-1]:
                gate.cancel()
            spoil(one)
            spoil(other)
            assert gates[-1].force_complete()
        assert purgatory.statistics().keys == len(purgatory.watched_keys(1_000)) == 202
        assert purgatory.operations() == stays
        stays[0].opened = True
        assert purgatory.check_and_complete(3) == 1
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize("shared", [False, True])
async def test_a_key_that_is_good_again_takes_its_entry_over(
    reported: list[dict[str, Any]], shared: bool
) -> None:
    async with Purgatory() as purgatory:
        key = Key("bad", 7)
        gates = [purgatory.try_complete_else_watch(Gate(), [key]) for _ in range(2 if shared else 1)]
        if shared:
            gates[0].cancel()
        key.hashing = raising(BadKey("hash"))
        assert gates[-1].force_complete()
        key.hashing = None
        assert purgatory.statistics().keys == 1
        assert purgatory.watched_keys(9) == [key]
        # Readers pass over the entry.
        assert purgatory.check_and_complete(key) == purgatory.count_watching(key, 9) == 0
        assert purgatory.operations(key) == purgatory.operations() == []
        assert gates[-1].ran == ["try_complete", "on_complete"]
        again = purgatory.try_complete_else_watch(Gate(), [key])
        assert purgatory.operations(key) == [again]
        again.opened = True
        assert purgatory.check_and_complete(key) == 1
        assert purgatory.statistics().keys == 0
        assert len(reported) == 1


async def test_a_failed_operation_with_a_bad_key_is_reported_and_logged(
    reported: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    async with Purgatory() as purgatory:
        key = Key("bad", 7)
        gate = purgatory.try_complete_else_watch(Gate(completing=raising(ValueError("hook"))), [key])
        key.hashing = raising(BadKey("hash"))
        gate.force_complete()
        await a_few_turns()
    assert sorted(type(context["exception"]).__name__ for context in reported) == ["BadKey", "ValueError"]
    assert len([record for record in caplog.records if record.name == "purgatory"]) == 2


# Checks


@pytest.mark.parametrize("spoil", [raise_in_hash, raise_in_eq])
def test_a_check_of_a_bad_key_raises_and_the_next_check_works(spoil: Callable[[Key], None]) -> None:
    purgatory = ManualClock().purgatory()
    for key in (Key("neighbour", 7), "good"):
        purgatory.try_complete_else_watch(Gate(), [key])
    bad = Key("bad", 7)
    spoil(bad)
    for call in (purgatory.check_and_complete, purgatory.cancel_for_key, purgatory.operations):
        with pytest.raises(BadKey):
            call(bad)
    for gate in purgatory.operations("good"):
        assert isinstance(gate, Gate)
        gate.opened = True
    assert purgatory.check_and_complete("good") == 1


@pytest.mark.parametrize("spoil", [raise_in_hash, raise_in_eq])
def test_a_bad_key_that_a_hook_checks_raises_or_is_reported_and_the_other_checks_run(
    spoil: Callable[[Key], None],
) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    bad = Key("bad", 7)
    purgatory.try_complete_else_watch(Gate(), [Key("neighbour", 7)])
    gates = {name: purgatory.try_complete_else_watch(Gate(), [name]) for name in ("first", "last")}

    def ask() -> None:
        for key in ("first", bad, "last"):
            assert purgatory.check_and_complete(key) == 0
        spoil(bad)

    for gate in gates.values():
        gate.opened = True
    purgatory.try_complete_else_watch(Gate(trying=ask), ["outer"])
    assert {gate.state for gate in gates.values()} == {COMPLETED}
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert [type(error) for error in caught.value.exceptions] == [BadKey]


@pytest.mark.parametrize("limit", [None, 2])
async def test_an_interrupt_in_the_check_of_a_key_that_has_gone_bad_gets_through(
    reported: list[dict[str, Any]], limit: int | None
) -> None:
    async with Purgatory() as purgatory:
        watched = Key("key", 7)
        gates = [purgatory.try_complete_else_watch(Gate(), [watched]) for _ in range(3)]

        def spoil_and_stop() -> None:
            watched.hashing = raising(BadKey("hash"))
            raise Stop

        gates[0].trying = spoil_and_stop
        with pytest.raises(Stop):
            purgatory.check_and_complete(Key("key", 7), limit=limit)
        await a_few_turns()
        # Nobody can look the key up: the end of the first and the rest of the check are reported.
        assert [type(context["exception"]) for context in reported] == [BadKey, BadKey]
        watched.hashing = None
    assert [gate.done for gate in gates] == [True, True, True]
    assert nothing_is_left(purgatory)


async def test_signalled_keys_of_one_hash_that_cannot_be_compared_keep_no_other_key_from_its_check(
    reported: list[dict[str, Any]],
) -> None:
    async with Purgatory() as purgatory:
        gates = [purgatory.try_complete_else_watch(Gate(), [number]) for number in range(10)]
        bad = [Key("one", 700), Key("other", 700)]
        one = purgatory.try_complete_else_watch(Gate(), [bad[0]])
        for gate in [*gates, one]:
            gate.opened = True
        for number in range(5):
            purgatory.check_and_complete_threadsafe(number)
        for key in bad:
            purgatory.check_and_complete_threadsafe(key)
        for number in range(5, 10):
            purgatory.check_and_complete_threadsafe(number)
        for key in bad:
            key.comparing = raising(BadKey("eq"))
        await a_few_turns()
        assert {gate.state for gate in gates} == {COMPLETED}
        # The table finds the very object without a comparison.
        assert one.state is COMPLETED
        # Later signals are heard, too.
        late = purgatory.try_complete_else_watch(Gate(), ["late"])
        late.opened = True
        purgatory.check_and_complete_threadsafe("late")
        await a_few_turns()
        assert late.done
    assert nothing_is_left(purgatory)


async def test_a_key_that_has_gone_bad_does_not_hide_the_cancellation_of_its_sweep(
    virtual_time: VirtualTimeLoop, reported: list[dict[str, Any]]
) -> None:
    async with Purgatory(slice_seconds=0.001) as purgatory:
        key = Key("key", 7)
        gates = [purgatory.try_complete_else_watch(Gate(), [key]) for _ in range(20)]
        for gate in gates:
            gate.trying = partial(virtual_time.jump, 0.001)
            gate.opened = True
        sweep = asyncio.create_task(purgatory.sweep(key))
        await asyncio.sleep(0)
        key.hashing = raising(BadKey("hash"))
        sweep.cancel()
        await asyncio.wait([sweep])
        assert sweep.cancelled()
        await a_few_turns()
        assert [type(context["exception"]) for context in reported] == [BadKey]
    assert all(gate.done for gate in gates)


def test_an_interrupt_in_the_hash_of_a_signalled_key_gets_through_and_no_signal_is_lost() -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    bad = Key("bad", 7)
    gates = [purgatory.try_complete_else_watch(Gate(), [key]) for key in ("before", bad, "behind")]
    for gate, key in zip(gates, ("before", bad, "behind"), strict=True):
        gate.opened = True
        purgatory.check_and_complete_threadsafe(key)
    interrupts = [Stop()]

    def interrupt_once() -> None:
        if interrupts:
            raise interrupts.pop()

    bad.hashing = interrupt_once
    with pytest.raises(BaseExceptionGroup) as caught:
        clock.advance(0)
    assert [type(error) for error in caught.value.exceptions] == [Stop]
    assert all(gate.done for gate in gates)


async def test_a_signal_of_a_key_that_cannot_be_compared_raises_and_the_other_signals_are_heard() -> None:
    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["good"])
        gate.opened = True
        bad = [Key("one", 7), Key("other", 7)]
        bad[0].comparing = raising(BadKey("eq"))
        purgatory.check_and_complete_threadsafe(bad[0])
        with pytest.raises(BadKey):
            purgatory.check_and_complete_threadsafe(bad[1])
        purgatory.check_and_complete_threadsafe("good")
        await a_few_turns()
        assert gate.state is COMPLETED
