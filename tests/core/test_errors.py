"""The library's own errors, and its public names."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

import purgatory
from purgatory import OperationWithdrawn, PurgatoryClosed, PurgatoryError, PurgatoryFull, PurgatoryNotOpen

EXPORTED = {
    "COMPILED",
    "AsyncDelayedOperation",
    "DelayedOperation",
    "DelayedQuorum",
    "DelayedValue",
    "OperationState",
    "OperationWithdrawn",
    "Purgatory",
    "PurgatoryClosed",
    "PurgatoryError",
    "PurgatoryFull",
    "PurgatoryNotOpen",
    "PurgatoryStatistics",
    "QuorumNotReached",
    "QuorumTimedOut",
    "Session",
    "SingleFlight",
    "Timer",
    "TimerTask",
    "TimingWheel",
    "__version__",
}


def exceptions_of_the_package() -> set[type[BaseException]]:
    """The exceptions that the modules of the package define, as far as their extras are installed."""
    return {
        member
        for module in modules()
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, BaseException)
        if member.__module__.partition(".")[0] == "purgatory"
    }


def modules() -> Iterator[object]:
    for module in pkgutil.walk_packages(purgatory.__path__, "purgatory.", onerror=lambda _: None):
        if module.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(module.name)
        except ImportError as error:
            # An extra that is not installed is no fault; a missing module of the package is one.
            if (error.name or "").startswith("purgatory"):
                raise


def test_every_error_of_the_package_descends_from_its_root() -> None:
    assert PurgatoryError.__base__ is Exception
    others = {each.__module__ for each in exceptions_of_the_package() if not issubclass(each, PurgatoryError)}
    assert others == set()


def test_every_error_but_the_root_says_when_it_is_raised() -> None:
    errors = exceptions_of_the_package() - {PurgatoryError}
    assert {PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen} <= errors
    assert [each for each in errors if not (each.__doc__ or "").startswith("Raised when ")] == []


def test_a_full_purgatory_is_not_taken_for_a_closed_one() -> None:
    assert not issubclass(PurgatoryClosed, PurgatoryFull)
    assert not issubclass(PurgatoryFull, PurgatoryClosed)


@pytest.mark.parametrize(
    "error", [OperationWithdrawn, PurgatoryClosed, PurgatoryFull, PurgatoryNotOpen, PurgatoryError]
)
def test_errors_can_be_pickled(error: type[PurgatoryError]) -> None:
    copy = pickle.loads(pickle.dumps(error("why")))
    assert type(copy) is error
    assert copy.args == ("why",)


def test_the_public_names() -> None:
    assert set(purgatory.__all__) == EXPORTED
    assert all(hasattr(purgatory, name) for name in EXPORTED)
    assert isinstance(purgatory.COMPILED, bool)
    assert purgatory.__version__.count(".") == 2


def test_importing_the_package_imports_no_extra() -> None:
    extras = [
        "uvloop",
        "rich",
        "pytest",
        "pyarrow",
        "pyspark",
        "prometheus_client",
        "starlette",
        "mypy_extensions",
    ]
    code = f"import sys, purgatory; print([name for name in {extras} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
