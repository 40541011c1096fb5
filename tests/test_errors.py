"""The library's own errors, and what else it exports."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import purgatory
from purgatory import PurgatoryClosed, PurgatoryError, PurgatoryFull

EXPORTED = {
    "COMPILED",
    "DelayedOperation",
    "OperationState",
    "Purgatory",
    "PurgatoryClosed",
    "PurgatoryError",
    "PurgatoryFull",
    "PurgatoryNotOpen",
    "PurgatoryStatistics",
    "Timer",
    "TimerTask",
    "TimingWheel",
    "__version__",
}


def test_there_is_one_root_and_few_leaves() -> None:
    assert PurgatoryError.__base__ is Exception
    assert issubclass(PurgatoryClosed, PurgatoryError)
    assert issubclass(PurgatoryFull, PurgatoryError)
    assert not issubclass(PurgatoryClosed, PurgatoryFull)


@pytest.mark.parametrize("leaf", [PurgatoryClosed, PurgatoryFull])
def test_every_leaf_says_when_it_is_raised(leaf: type[PurgatoryError]) -> None:
    assert (leaf.__doc__ or "").startswith("Raised when ")


@pytest.mark.parametrize("error", [PurgatoryClosed, PurgatoryFull, PurgatoryError])
def test_errors_can_be_pickled(error: type[PurgatoryError]) -> None:
    copy = pickle.loads(pickle.dumps(error("why")))
    assert type(copy) is error
    assert copy.args == ("why",)


def test_the_public_names() -> None:
    assert set(purgatory.__all__) == EXPORTED
    assert all(hasattr(purgatory, name) for name in EXPORTED)
    assert isinstance(purgatory.COMPILED, bool)
    assert purgatory.__version__.count(".") == 2


def test_importing_it_imports_no_extra() -> None:
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
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
