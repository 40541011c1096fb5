"""Both builds look alike from outside, but for the differences that docs/builds.md lists."""

from __future__ import annotations

import copy
import gc
import importlib.util
import inspect
import pickle
import pydoc
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from unittest import mock

import pytest

import purgatory
from purgatory import COMPILED, DelayedOperation, Purgatory, Timer, TimerTask, TimingWheel
from purgatory.__main__ import loops
from purgatory.testing import ManualClock
from tests.operations import Gate

CORE = Path(purgatory.__file__).parent / "_core"


def source_of(cls: type) -> type[Any]:
    """The class as its Python file defines it, whichever build is loaded."""
    path = CORE.parent.parent.joinpath(*cls.__module__.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"{cls.__module__}_source", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source: type[Any] = getattr(module, cls.__name__)
    return source


def parameters(function: Callable[..., Any]) -> list[tuple[str, object]]:
    """The name and the default of each parameter but the first, which is self."""
    return [(p.name, p.default) for p in list(inspect.signature(function).parameters.values())[1:]]


COMPILED_CLASSES = [DelayedOperation.__base__, TimerTask, TimingWheel, Timer, Purgatory.__base__]


@pytest.mark.parametrize("cls", COMPILED_CLASSES)
def test_a_class_and_its_methods_have_the_docstrings_and_parameters_of_the_source(cls: type) -> None:
    source = source_of(cls)
    assert inspect.getdoc(cls) == inspect.getdoc(source)
    compared = 0
    for name, written in vars(source).items():
        if name.startswith("_") or not (inspect.isfunction(written) or isinstance(written, property)):
            continue
        loaded = getattr(cls, name)
        assert inspect.getdoc(loaded) == inspect.getdoc(written), name
        if inspect.isfunction(written):
            assert parameters(loaded) == parameters(written), name
        compared += 1
    assert compared


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (DelayedOperation, "timeout"),
        (TimingWheel, "wheel_size start"),
        (Timer, "tick wheel_size slice_seconds"),
        (Purgatory, "name tick wheel_size max_pending slice_seconds observers"),
    ],
)
def test_a_class_is_called_with_the_parameters_of_its_signature(cls: type, names: str) -> None:
    assert list(inspect.signature(cls).parameters)[: len(names.split())] == names.split()


def test_a_subclass_without_a_constructor_has_the_signature_of_its_base() -> None:
    class Plain(DelayedOperation[None]):
        pass

    assert list(inspect.signature(Plain).parameters) == ["timeout"]


def test_help_shows_every_public_method_with_its_promise() -> None:
    page = pydoc.plain(pydoc.render_doc(Purgatory))
    for promise in ("Try `operation` once.", "Withdraw every operation that watches", "The present figures"):
        assert promise in page


def test_an_autospec_has_the_methods_and_knows_which_are_awaited() -> None:
    spec = mock.create_autospec(Purgatory, instance=True)
    spec.check_and_complete.return_value = 3
    assert spec.check_and_complete("key") == 3
    assert inspect.iscoroutinefunction(spec.sweep)
    with pytest.raises(AttributeError):
        spec.check_and_completed("key")
    mock.create_autospec(Gate, instance=True).force_complete()


def test_a_method_can_be_patched_on_a_class() -> None:
    waits = ManualClock().purgatory()
    with mock.patch.object(Purgatory, "check_and_complete", return_value=7):
        assert waits.check_and_complete("key") == 7
    assert waits.check_and_complete("key") == 0
    with mock.patch.object(Gate, "try_complete", lambda gate: gate.force_complete()):
        assert waits.try_complete_else_watch(Gate(), ["key"]).done


def test_weak_references_reach_what_a_python_class_allows() -> None:
    gate = Gate()
    reference = weakref.ref(gate)
    assert reference() is gate
    del gate
    gc.collect()
    assert reference() is None

    class Slotted(DelayedOperation[None]):
        __slots__ = ()

    for strong in (Slotted(1), TimerTask(), Timer(), TimingWheel(2), Purgatory()):
        with pytest.raises(TypeError, match="cannot create weak reference"):
            weakref.ref(strong)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_purgatory_is_not_copied(copying: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match=r"cannot copy or pickle <Purgatory 'waits' new .*make a new one"):
        copying(Purgatory("waits"))


@pytest.mark.parametrize(
    "forgotten",
    [
        lambda waits: waits.sweep("key"),
        lambda waits: waits.aclose(),
        lambda waits: waits.run(),
        lambda waits: waits.wait_until(lambda: True, ["key"]),
    ],
    ids=["sweep", "aclose", "run", "wait_until"],
)
def test_a_forgotten_await_warns(forgotten: Callable[[Purgatory], object]) -> None:
    waits = ManualClock().purgatory()
    with pytest.warns(RuntimeWarning, match=r"coroutine 'Purgatory\.\w+' was never awaited"):
        forgotten(waits)


def test_an_operation_that_nobody_awaits_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManualClock().purgatory().try_complete_else_watch(Gate(), ["key"])
        gc.collect()


# The differences. Each test is an entry of the list in docs/builds.md.


def raised(call: Callable[[], object]) -> str:
    with pytest.raises((TypeError, AttributeError)) as caught:
        call()
    return f"{caught.type.__name__}: {caught.value}"


def test_difference_a_compiled_method_is_a_builtin_without_annotations() -> None:
    method = Purgatory.check_and_complete
    assert inspect.isfunction(method) is not COMPILED
    assert bool(getattr(method, "__annotations__", {})) is not COMPILED
    assert hasattr(method, "__code__") is not COMPILED
    annotated = inspect.signature(method).return_annotation is not inspect.Signature.empty
    assert annotated is not COMPILED


def test_difference_the_constructor_itself_and_a_task_show_arbitrary_parameters_on_one_build() -> None:
    constructor = list(inspect.signature(DelayedOperation.__init__).parameters)
    assert constructor == (["self", "args", "kwargs"] if COMPILED else ["self", "timeout"])
    task = list(inspect.signature(TimerTask).parameters)
    assert task == ([] if COMPILED else ["arguments", "options"])


def test_difference_an_autospec_does_not_check_the_arguments_of_compiled_methods() -> None:
    spec = mock.create_autospec(Purgatory, instance=True)
    if COMPILED:
        spec.check_and_complete()
    else:
        with pytest.raises(TypeError, match="missing a required argument: 'key'"):
            spec.check_and_complete()
    # `sweep` is compiled on neither.
    with pytest.raises(TypeError, match="missing a required argument: 'key'"):
        spec.sweep()


def test_difference_messages_about_missing_and_unknown_arguments() -> None:
    waits: Any = ManualClock().purgatory()
    missing = raised(lambda: waits.check_and_complete())
    if COMPILED:
        assert missing == "TypeError: check_and_complete() missing required argument 'key' (pos 1)"
    else:
        assert missing.endswith("check_and_complete() missing 1 required positional argument: 'key'")
    # Both builds refuse these, too.
    raised(lambda: waits.check_and_complete("key", 3, 4, 5))
    raised(lambda: waits.check_and_complete("key", unknown=3))


def test_difference_compiled_methods_refuse_arguments_and_attributes_of_a_wrong_type() -> None:
    waits: Any = ManualClock().purgatory()
    if COMPILED:
        assert raised(lambda: setattr(waits, "name", 3)) == "TypeError: str object expected; got int"
    else:
        waits.name = 3


def test_both_builds_name_the_argument_that_is_wrong() -> None:
    clock = ManualClock()
    waits: Any = clock.purgatory()
    gate: Any = waits.try_complete_else_watch(Gate(60), ["key"])
    text: Any = "3"
    seconds = "must be a number of seconds or None, not '3'"
    assert raised(lambda: Gate(text)) == f"TypeError: timeout {seconds}"
    assert raised(lambda: gate.reschedule(text)) == f"TypeError: timeout {seconds}"
    assert raised(lambda: gate.try_again_in(text)) == f"TypeError: seconds {seconds}"
    for call in (partial(waits.watching, "key"), partial(waits.count_watching, "key"), waits.watched_keys):
        assert raised(partial(call, 2.5)) == "TypeError: limit must be an int, not 2.5"
    assert raised(lambda: waits.check_and_complete("key", "1")) == (
        "TypeError: limit must be an int or None, not '1'"
    )
    assert raised(lambda: Purgatory(name=cast(Any, 3))) == "TypeError: name must be a str, not 3"
    for name in ("tick", "slice_seconds"):
        options: Any = {name: text}
        assert raised(partial(Purgatory, **options)) == (
            f"TypeError: {name} must be a number of seconds, not '3'"
        )
    assert raised(lambda: Purgatory(wheel_size=text)) == "TypeError: wheel_size must be an int, not '3'"
    assert raised(lambda: Purgatory(max_pending=text)) == (
        "TypeError: max_pending must be an int or None, not '3'"
    )


def test_difference_messages_about_attributes() -> None:
    refused = raised(lambda: setattr(Timer(), "tick", 1))
    assert refused == (
        "AttributeError: attribute 'tick' of 'Timer' objects is not writable"
        if COMPILED
        else "AttributeError: property 'tick' of 'Timer' object has no setter"
    )


@pytest.mark.parametrize("cls", [Timer, TimingWheel])
def test_difference_the_timer_and_the_wheel_are_final_when_compiled(cls: Any) -> None:
    arguments = [20] if cls is TimingWheel else []
    subclass = type("Mine", (cls,), {})
    if COMPILED:
        assert raised(lambda: subclass(*arguments)) == (
            "TypeError: interpreted classes cannot inherit from compiled"
        )
    else:
        subclass(*arguments)


def test_difference_profilers_and_tracers_see_no_compiled_function() -> None:
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        ManualClock().purgatory().check_and_complete("key")
    finally:
        sys.setprofile(None)
    assert ("check_and_complete" in called) is not COMPILED


# What `python -m purgatory` says.


def test_the_command_says_the_version_the_build_the_interpreter_and_the_loops() -> None:
    first, core, interpreter, last = subprocess.run(
        [sys.executable, "-m", "purgatory"], text=True, capture_output=True, check=True
    ).stdout.splitlines()
    assert first.startswith(f"purgatory {purgatory.__version__}, anyio ")
    build = "compiled" if COMPILED else "interpreted"
    module: ModuleType = purgatory._core.operation
    assert core == f"core: {build}, {module.__file__}"
    assert interpreter.endswith(f", {sys.executable}")
    assert last == f"event loops: {', '.join(loops())}"


def test_the_command_says_with_help_what_it_prints_and_takes_no_other_argument() -> None:
    command = [sys.executable, "-m", "purgatory"]
    printed = subprocess.run([*command, "--help"], text=True, capture_output=True, check=True).stdout
    assert "whether the core is compiled" in printed
    refused = subprocess.run([*command, "status"], text=True, capture_output=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")


def test_the_loops_are_those_that_are_installed() -> None:
    with mock.patch("purgatory.__main__.version", return_value="0.22"):
        assert loops() == ["asyncio", "uvloop 0.22"]
    with mock.patch("purgatory.__main__.version", side_effect=PackageNotFoundError):
        assert loops() == ["asyncio"]
