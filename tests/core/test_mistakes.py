"""Mistakes of the program that uses the library: each ends in an error that names the cause and the mend."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, final

import pytest
import pytest_asyncio

from purgatory import (
    DelayedOperation,
    DelayedQuorum,
    OperationState,
    Purgatory,
    PurgatoryFull,
    PurgatoryNotOpen,
)
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, a_few_turns, raising

# Awaiting what nobody would wake


async def test_awaiting_an_operation_that_was_never_offered_raises(purgatory: Purgatory) -> None:
    gate = Gate(60)
    with pytest.raises(RuntimeError, match="offer it before you await it"):
        await gate
    assert gate.state is OperationState.NEW
    # Nothing is left of the attempt.
    purgatory.try_complete_else_watch(gate, ["a"]).force_complete()
    assert await gate == "gate"


async def test_waiting_for_a_value_in_place_of_a_function_raises(purgatory: Purgatory) -> None:
    ready: Any = False
    with pytest.raises(
        TypeError, match=r"^wait_until takes a function to call, not False: put `lambda:` before"
    ):
        await purgatory.wait_until(ready, ["a"])
    assert purgatory.statistics().pending == 0


async def test_awaiting_an_operation_that_was_refused_raises() -> None:
    async with Purgatory(max_pending=1) as purgatory:
        purgatory.try_complete_else_watch(Gate(), ["a"])
        refused = Gate()
        with pytest.raises(PurgatoryFull):
            purgatory.try_complete_else_watch(refused, ["a"])
        with pytest.raises(RuntimeError, match="offer it before you await it"):
            await refused


def test_awaiting_an_operation_in_another_event_loop_raises() -> None:
    async def offer() -> Gate:
        purgatory.start()
        return purgatory.try_complete_else_watch(Gate(60), ["a"])

    async def wait() -> None:
        with pytest.raises(RuntimeError, match="the purgatory of another event loop"):
            await gate

    purgatory = Purgatory()
    with asyncio.Runner() as runner, asyncio.Runner() as other:
        gate = runner.run(offer())
        other.run(wait())
        assert gate.state is OperationState.PENDING
        runner.run(purgatory.aclose())


@pytest.mark.parametrize(
    "wait",
    [lambda purgatory: purgatory.wait_until(lambda: True, ["a"]), lambda purgatory: purgatory.sweep("a")],
    ids=["wait_until", "sweep"],
)
def test_waiting_in_another_event_loop_is_refused_and_leaves_nothing(
    wait: Callable[[Purgatory], Coroutine[Any, Any, object]],
) -> None:
    async def start() -> None:
        purgatory.start()

    async def refused() -> None:
        with pytest.raises(RuntimeError, match=r"another event loop: .* asyncio\.run_coroutine_threadsafe"):
            await wait(purgatory)

    purgatory = Purgatory()
    with asyncio.Runner() as runner, asyncio.Runner() as other:
        runner.run(start())
        other.run(refused())
        assert purgatory.statistics().pending == 0
        runner.run(purgatory.aclose())


@pytest.mark.parametrize(("key", "mend"), [(["k"], "did you mean 'k'"), ({"k"}, "did you mean 'k'")])
def test_a_list_in_place_of_a_key_is_refused_with_the_key(held: Purgatory, key: Any, mend: str) -> None:
    for call in (held.check_and_complete, held.cancel_for_key, held.operations):
        with pytest.raises(TypeError, match=mend):
            call(key)
    several: Any = ["a", "b"]
    with pytest.raises(TypeError, match="make a call for each key"):
        held.check_and_complete(several)
    mapping: Any = {}
    with pytest.raises(TypeError, match="unhashable type: 'dict'"):
        held.check_and_complete(mapping)


@pytest.mark.parametrize("keys", [bytearray(b"ab"), memoryview(b"ab"), b"ab", "ab"])
def test_text_and_bytes_are_no_collections_of_keys(held: Purgatory, keys: Any) -> None:
    with pytest.raises(TypeError, match="keys must be a collection of keys"):
        held.try_complete_else_watch(Gate(), keys)
    assert held.statistics().keys == 0


async def test_an_operation_that_is_done_can_be_awaited_in_any_event_loop_and_without_an_offer() -> None:
    async def offer() -> Gate:
        async with Purgatory() as purgatory:
            return purgatory.try_complete_else_watch(Gate(60), ["a"])

    assert await (await asyncio.to_thread(asyncio.run, offer())) == "gate"
    never_offered = Gate()
    never_offered.force_complete()
    assert await never_offered == "gate"


async def test_a_task_of_any_event_loop_may_await_an_operation_of_a_manual_clock() -> None:
    async def wait() -> str:
        return await gate

    clock = ManualClock()
    gate = clock.purgatory().try_complete_else_watch(Gate(60), ["a"])
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    clock.advance(60)
    assert await waiting == "gate"


async def test_a_hook_of_an_operation_without_a_purgatory_may_begin_to_await_it() -> None:
    def begin() -> None:
        awaiting = gate.__await__()
        next(awaiting)
        waits.append(awaiting)

    waits: list[Generator[Any, None, str]] = []
    gate = Gate(completing=begin)
    gate.force_complete()
    with pytest.raises(StopIteration, match="gate"):
        next(waits[0])


# A purgatory that was never opened


@pytest.mark.parametrize(
    "use",
    [
        lambda purgatory: purgatory.try_complete_else_watch(Gate(), ["a"]),
        lambda purgatory: purgatory.check_and_complete("a"),
        lambda purgatory: purgatory.check_and_complete_threadsafe("a"),
        lambda purgatory: asyncio.run(purgatory.sweep("a")),
    ],
    ids=["offer", "check", "signal", "sweep"],
)
def test_a_purgatory_that_was_never_opened_says_so(use: Callable[[Purgatory], object]) -> None:
    with pytest.raises(PurgatoryNotOpen, match=r"'early' is not open: use `async with`"):
        use(Purgatory("early"))


@pytest.mark.parametrize("opened", [False, True])
async def test_after_closing_a_check_returns_zero(opened: bool) -> None:
    purgatory = Purgatory()
    if opened:
        purgatory.start()
    await purgatory.aclose()
    assert purgatory.check_and_complete("a") == 0
    assert await purgatory.sweep("a") == 0
    assert purgatory.cancel_for_key("a") == []


# Debug mode


@pytest.mark.parametrize("debug", [None, False, True])
@pytest.mark.parametrize("loop_debug", [False, True])
async def test_a_purgatory_is_in_debug_mode_when_its_loop_is_unless_it_is_told_otherwise(
    debug: bool | None, loop_debug: bool
) -> None:
    asyncio.get_running_loop().set_debug(loop_debug)
    async with Purgatory(debug=debug) as purgatory:
        gate = Shadowing()
        if loop_debug if debug is None else debug:
            with pytest.raises(TypeError):
                purgatory.try_complete_else_watch(gate, ["a"])
            assert gate.state is OperationState.NEW
        else:
            assert purgatory.try_complete_else_watch(gate, ["a"]).state is OperationState.PENDING


@pytest_asyncio.fixture
async def debugged() -> AsyncIterator[Purgatory]:
    """An open purgatory in debug mode."""
    async with Purgatory(debug=True) as purgatory:
        yield purgatory


async def test_debug_mode_leaves_the_course_of_things_as_it_is(debugged: Purgatory) -> None:
    first = debugged.try_complete_else_watch(Gate(60), ["a"])
    assert debugged.check_and_complete("a") == 0
    first.opened = True
    assert debugged.check_and_complete("a") == 1
    second = debugged.try_complete_else_watch(Gate(60), ["a"])
    assert second.reschedule(0)
    assert second.ran == ["try_complete", "on_complete", "on_expiration"]
    failing = debugged.try_complete_else_watch(Gate(60, trying=raising(ArithmeticError("mine"))), ["a"])
    with pytest.raises(ArithmeticError, match="mine"):
        await failing
    third = debugged.try_complete_else_watch(Gate(60), ["a"])
    assert debugged.cancel_for_key("a") == [third]
    figures = debugged.statistics()
    assert (figures.completed, figures.expired, figures.failed, figures.cancelled) == (1, 1, 1, 1)


# Slow hooks


@pytest.fixture
def warned(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "purgatory")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "purgatory"]


async def test_debug_mode_reports_slow_hooks_with_their_class_and_duration(
    warned: Callable[[], list[str]], debugged: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    # From now on every hook is slow.
    asyncio.get_running_loop().slow_callback_duration = 0.0
    debugged.try_complete_else_watch(Gate(0), ["a"])
    await a_few_turns()
    tried, settled = (message for message in warned() if "Gate" in message)
    assert re.search(r"try_complete of Gate blocked the loop for \d\.\d+ seconds", tried)
    assert "on_complete and on_expiration of Gate blocked" in settled
    record = next(record for record in caplog.records if record.name == "purgatory")
    assert (record.kind, record.keys) == ("Gate", ("a",))  # type: ignore[attr-defined]

    gate = debugged.try_complete_else_watch(Gate(60), ["a"])
    gate.opened = True
    debugged.check_and_complete("a")
    await a_few_turns()
    assert "on_complete of Gate blocked" in warned()[-2]


async def test_debug_mode_says_nothing_of_hooks_that_are_fast(
    warned: Callable[[], list[str]], debugged: Purgatory
) -> None:
    asyncio.get_running_loop().slow_callback_duration = 3600.0
    debugged.try_complete_else_watch(Gate(60), ["a"]).force_complete()
    await a_few_turns()
    assert warned() == []


# Names that belong to the library


class Shadowing(Gate):
    def __init__(self) -> None:
        super().__init__(60)
        # When the class is made, nothing sees this.
        setattr(self, "result", "mine")  # noqa: B010


async def test_debug_mode_refuses_an_operation_with_a_field_that_hides_a_method(debugged: Purgatory) -> None:
    with pytest.raises(TypeError, match=r"Shadowing sets self\.result, a name that belongs to the library"):
        debugged.try_complete_else_watch(Shadowing(), ["a"])
    assert debugged.operations() == []


async def test_a_field_that_hides_the_result_does_not_change_what_awaiting_gives(
    purgatory: Purgatory,
) -> None:
    shadowing = purgatory.try_complete_else_watch(Shadowing(), ["a"])
    shadowing.force_complete()
    assert await shadowing == "gate"


@pytest.mark.parametrize("name", ["run", "result", "state", "timeout", "deadline", "_state", "_bucket"])
def test_a_class_that_overrides_a_name_of_the_library_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"Mine.{name} overrides a name that belongs to the library"):
        type("Mine", (Gate,), {name: None})
    with pytest.raises(TypeError, match=f"Mine.{name} overrides"):
        type("Mine", (Gate,), {"__slots__": (name,)})


def test_a_mixin_that_overrides_a_name_of_the_library_is_refused() -> None:
    class Mixin:
        state = "mine"

    with pytest.raises(TypeError, match=r"Mixin\.state overrides"):
        type("Mine", (Mixin, Gate), {})
    # Behind the operation it overrides nothing.
    type("Mine", (Gate, Mixin), {})


def method(self: Any, value: Any) -> None:
    self.result = value


def private_field(self: Any, value: Any) -> None:
    self._state = value


def field_of_the_timer(self: Any, value: Any) -> None:
    self._next = value


def one_of_several(self: Any, value: Any) -> None:
    self.mine, self._waiters = value


def counter(self: Any, value: Any) -> None:
    self._parked += value


def property_in_a_closure(self: Any, value: Any) -> Callable[[], Any]:
    self.timeout = value
    return lambda: self


def annotated(self: Any, value: Any) -> None:
    self.done: bool = value  # type: ignore[misc]


def target_of_a_loop(operation: Any, value: Any) -> None:
    for operation.keys in value:
        pass


def target_of_with(self: Any, value: Any) -> None:
    with value as (self.mine, *self.state):
        pass


async def coroutine(self: Any, value: Any) -> None:
    self.deadline = await value


@pytest.mark.parametrize(
    ("assign", "name"),
    [
        (method, "result"),
        (private_field, "_state"),
        (field_of_the_timer, "_next"),
        (one_of_several, "_waiters"),
        (counter, "_parked"),
        (property_in_a_closure, "timeout"),
        (annotated, "done"),
        (target_of_a_loop, "keys"),
        (target_of_with, "state"),
        (coroutine, "deadline"),
    ],
)
def test_a_class_whose_method_assigns_to_a_name_of_the_library_is_refused(
    assign: Callable[..., Any], name: str
) -> None:
    refused = rf"Mine\.{assign.__name__} sets self\.{name}, a name that belongs to the library"
    with pytest.raises(TypeError, match=refused):
        type("Mine", (Gate,), {"__init__": assign})
    with pytest.raises(TypeError, match=refused):
        type("Mine", (Gate,), {"mine": property(lambda self: 1, assign)})


def test_a_method_may_read_names_of_the_library_and_assign_to_them_in_other_objects() -> None:
    class Session:
        _timeout = 1.0

    class Mine(Gate):
        def __init__(self, session: Session) -> None:
            super().__init__(60)
            self.session = session
            # In a class of the user's own, this name is the user's.
            session._timeout = self.session._timeout = self._timeout

        @staticmethod
        def reset(session: Session) -> None:
            session._timeout = 0.0

        def __str__() -> str:  # type: ignore[misc]
            raise AssertionError("never runs")

        def snapshot(self) -> object:
            class Snapshot:
                def snapshot(self, state: OperationState) -> Snapshot:
                    self.state = state
                    return self

            return Snapshot().snapshot(self.state)

    assert Mine(session := Session()).timeout == session._timeout == 60


def make(file: str, source: str) -> type[DelayedOperation[Any]]:
    """The class `Mine` of the source, which was compiled from this file."""
    namespace: dict[str, Any] = {"DelayedOperation": DelayedOperation, "final": final}
    with warnings.catch_warnings(action="ignore"):
        code = compile(source, file, "exec")
    exec(code, namespace)
    made: type[DelayedOperation[Any]] = namespace["Mine"]
    return made


ASSIGNING = """
class Mine(DelayedOperation[None]):
    def try_complete(self):
        return self.force_complete()

    @final
    def set(self, value):
        '''An escape that is none, \\d, and a line that is not indented:
no
        '''
        self.mine = self.result
        self.result = (
            value
        )
"""
REFUSED = r"Mine\.set sets self\.result, a name that belongs to the library"


def test_the_file_tells_whether_a_method_assigns_to_a_name_of_the_library(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for source in (ASSIGNING, ASSIGNING.replace("self.result = (", "self.answer = ("), ASSIGNING):
        file.write_text(source)
        if source == ASSIGNING:
            with pytest.raises(TypeError, match=REFUSED):
                make(str(file), source)
        else:
            make(str(file), source)


@pytest.mark.parametrize("written", ["", "((", ASSIGNING.replace("set(self", "put(self"), "self.result = 1"])
def test_a_file_that_was_changed_after_the_import_has_no_class_refused(written: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    for lines_above in range(8):
        file.write_text("\n" * lines_above + written)
        make(str(file), ASSIGNING)


async def test_without_its_source_a_class_that_assigns_is_refused_at_the_offer(debugged: Purgatory) -> None:
    operation: Any = make("<string>", ASSIGNING)(60)
    operation.set("mine")
    with pytest.raises(TypeError, match=r"Mine sets self\.result, a name that belongs to the library"):
        debugged.try_complete_else_watch(operation, ["a"])


def needed_field(self: Any) -> None:
    self._needed = 1


@pytest.mark.parametrize("namespace", [{"_members": ()}, {"missing": ()}, {"__init__": needed_field}])
def test_a_class_that_overrides_a_name_of_a_ready_made_operation_is_refused(
    namespace: dict[str, object],
) -> None:
    with pytest.raises(TypeError, match="a name that belongs to the library"):
        type("Mine", (DelayedQuorum,), namespace)
    # In other operations the name is free.
    type("Mine", (Gate,), namespace)


@pytest.mark.parametrize("name", ["state", "timeout", "done", "keys", "deadline", "expired", "scheduled"])
def test_setting_a_property_of_the_library_raises_an_error_that_names_it(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}'"):
        setattr(Gate(), name, "mine")


# Hooks


@pytest.mark.parametrize("hook", ["try_complete", "on_complete", "on_expiration"])
def test_an_async_hook_is_refused_when_its_class_is_made(hook: str) -> None:
    async def waits(self: Gate) -> None: ...

    with pytest.raises(TypeError, match=rf"Mine\.{hook} must not be `async def`"):
        type("Mine", (Gate,), {hook: waits})


def test_the_refusal_of_an_async_try_complete_names_the_class_that_has_an_async_condition() -> None:
    async def waits(self: Gate) -> None: ...

    with pytest.raises(TypeError, match=r"Override condition\(\) of an AsyncDelayedOperation instead"):
        type("Mine", (Gate,), {"try_complete": waits})


def test_an_async_hook_of_a_mixin_is_refused() -> None:
    class Mixin:
        async def on_complete(self) -> None: ...

    with pytest.raises(TypeError, match=r"Mine\.on_complete must not be"):
        type("Mine", (Mixin, Gate), {})


class Boastful(DelayedOperation[None]):
    """Returns something from `try_complete`, and does nothing else."""

    def __init__(self, returned: object) -> None:
        super().__init__(60)
        self.returned = returned

    def try_complete(self) -> Any:
        return self.returned


class Undecided:
    def __bool__(self) -> NoReturn:
        raise ArithmeticError("neither true nor false")


async def some_coroutine() -> None: ...


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: True, RuntimeError, r"Boastful\.try_complete\(\) returned True, but did not complete"),
        (some_coroutine, TypeError, r"Boastful\.try_complete\(\) returned an awaitable"),
        (asyncio.Future, TypeError, r"Boastful\.try_complete\(\) returned an awaitable"),
        (Undecided, ArithmeticError, "neither"),
    ],
)
async def test_a_try_that_returns_something_true_and_completes_nothing_fails_the_operation(
    make: Callable[[], object], error: type[Exception], message: str, purgatory: Purgatory
) -> None:
    at_the_offer = purgatory.try_complete_else_watch(Boastful(make()), ["a"])
    with pytest.raises(error, match=message):
        await at_the_offer
    later = purgatory.try_complete_else_watch(Boastful(False), ["a"])
    other = purgatory.try_complete_else_watch(Gate(60), ["a"])
    other.opened = True
    later.returned = make()
    assert purgatory.check_and_complete("a") == 1
    with pytest.raises(error, match=message):
        await later
    assert purgatory.statistics().failed == 2
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize("returned", [None, 0, "", False])
async def test_a_try_may_return_anything_that_is_false(returned: object, purgatory: Purgatory) -> None:
    waiting = purgatory.try_complete_else_watch(Boastful(returned), ["a"])
    assert purgatory.check_and_complete("a") == 0
    assert waiting.state is OperationState.PENDING


async def test_a_try_that_withdraws_its_operation_may_return_anything(purgatory: Purgatory) -> None:
    class Withdrawing(Boastful):
        def try_complete(self) -> Any:
            return self.returned and self.cancel()

    at_the_offer = purgatory.try_complete_else_watch(Withdrawing(True), ["a"])
    later = purgatory.try_complete_else_watch(Withdrawing(False), ["a"])
    later.returned = True
    assert purgatory.check_and_complete("a") == 0
    assert at_the_offer.state is later.state is OperationState.CANCELLED


async def test_an_operation_without_try_complete_is_refused(purgatory: Purgatory) -> None:
    class Abstract(DelayedOperation[None]): ...

    class Concrete(Abstract):
        def try_complete(self) -> bool:
            return self.force_complete()

    operation = Abstract(60)
    with pytest.raises(TypeError, match=r"Abstract must override try_complete\(\)"):
        purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.state is OperationState.NEW
    assert purgatory.statistics().failed == 0
    assert nothing_is_left(purgatory)
    assert purgatory.try_complete_else_watch(Concrete(60), ["a"]).done


async def test_an_operation_that_raises_not_implemented_error_fails(purgatory: Purgatory) -> None:
    operation = purgatory.try_complete_else_watch(Gate(trying=raising(NotImplementedError("not yet"))), ["a"])
    with pytest.raises(NotImplementedError, match="not yet"):
        await operation


# Other threads


@pytest.mark.parametrize(
    "use",
    [
        lambda purgatory, _: purgatory.check_and_complete("a"),
        lambda purgatory, _: purgatory.try_complete_else_watch(Gate(), ["a"]),
        lambda purgatory, _: purgatory.cancel_for_key("a"),
        lambda _, gate: gate.force_complete(),
        lambda _, gate: gate.cancel(),
        lambda _, gate: gate.reschedule(1),
        lambda _, gate: gate.try_again_in(1),
        lambda purgatory, gate: purgatory.watch_also(gate, ["b"]),
    ],
    ids=[
        *("check", "offer", "cancel_for_key", "force_complete", "cancel", "reschedule", "try_again_in"),
        "watch_also",
    ],
)
async def test_debug_mode_refuses_calls_from_another_thread(
    use: Callable[[Purgatory, Gate], object], debugged: Purgatory
) -> None:
    gate = debugged.try_complete_else_watch(Gate(60), ["a"])
    with pytest.raises(RuntimeError, match=r"from another thread call check_and_complete_threadsafe\(key\)"):
        await asyncio.to_thread(use, debugged, gate)
    assert gate.state is OperationState.PENDING
    assert gate.timeout == 60
    gate.opened = True
    await asyncio.to_thread(debugged.check_and_complete_threadsafe, "a")
    assert await gate == "gate"


@pytest.mark.parametrize(
    "use",
    [
        lambda purgatory: purgatory.check_and_complete("a"),
        lambda purgatory: purgatory.check_and_complete("nobody waits for it"),
        lambda purgatory: purgatory.cancel_for_key("a"),
        lambda purgatory: purgatory.complete_for_key("a", 1),
        lambda purgatory: purgatory.fail_for_key("a", ValueError("bad")),
    ],
    ids=["check", "check of another key", "cancel_for_key", "complete_for_key", "fail_for_key"],
)
async def test_a_call_for_a_key_from_another_thread_is_refused_without_debug_mode(
    use: Callable[[Purgatory], object], purgatory: Purgatory
) -> None:
    gates = [purgatory.try_complete_else_watch(Gate(60), ["a"]) for _ in range(2)]
    with pytest.raises(RuntimeError, match=r"from another thread call check_and_complete_threadsafe\(key\)"):
        await asyncio.to_thread(use, purgatory)
    assert [gate.state for gate in gates] == [OperationState.PENDING] * 2
    assert gates[0].ran == ["try_complete"]
    errors: list[BaseException | None] = []

    def use_in_a_thread() -> None:
        with ThreadPoolExecutor(1) as threads:
            errors.append(threads.submit(use, purgatory).exception())

    # While it closes, the other one still waits.
    gates[0].expiring = use_in_a_thread
    await purgatory.aclose()
    assert isinstance(errors[0], RuntimeError)
    # Others may signal at any time.
    await asyncio.to_thread(use, purgatory)


# A tuple in place of a list of keys


@pytest.mark.parametrize(
    ("keys", "checked", "hinted"),
    [
        (("topic", 3), None, True),
        (("topic", 3), "topic", False),
        (("topic", "other"), None, False),
        ([("topic", 3)], None, False),
    ],
)
async def test_debug_mode_hints_at_a_tuple_that_was_meant_as_one_key(
    keys: Any,
    checked: str | None,
    hinted: bool,
    warned: Callable[[], list[str]],
    virtual_time: VirtualTimeLoop,
) -> None:
    async with Purgatory(debug=True) as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(1), keys)
        if checked is not None:
            purgatory.check_and_complete(checked)
        await gate
    await a_few_turns()
    assert bool(warned()) is hinted
    assert not hinted or "when the tuple is meant as one key, write [('topic', 3)]" in warned()[0]


async def test_closing_hints_at_no_keys(warned: Callable[[], list[str]]) -> None:
    async with Purgatory(debug=True) as purgatory:
        purgatory.try_complete_else_watch(Gate(1), ("topic", 3))
    await a_few_turns()
    assert warned() == []
