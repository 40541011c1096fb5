"""The power goes off at every operation of a scripted run, and at some of the recovery after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Final

import pytest
from hypothesis import settings

from tests.delayed.storage.simulated_disk import EVERYTHING, NOTHING, PowerCut, SimulatedDisk, Survival
from tests.delayed.storage.store_run import NOW, StoreRun

HOUR: Final = 3_600_000
# Choices by chance of what survives, for each operation.
CHOICES: Final = max(2, settings().max_examples // 12)
# Bytes of the log from which on it is moved when the store is opened: always, or never.
LONG: Final = [0, 1 << 27]
# Tests, so that several workers can share them.
PARTS: Final = 2


def script(run: StoreRun) -> Iterator[None]:
    """All that a store does, in an order in which much depends on what was before."""
    soon, later, latest = NOW + 5_000, NOW + 60_000, NOW + 2 * HOUR
    a = run.put(soon, b"a", soon=True)
    b = run.put(later, b"b", "named")
    c = run.put(later, b"c" * 600)
    assert a is not None
    assert b is not None
    assert c is not None
    yield
    # The same message, and another one with its id.
    assert run.put(later, b"b", "named") == b
    assert run.put(latest, b"other", "named") is None
    d = run.put(latest, b"d", "far")
    gone = run.put(later, b"gone in the log")
    assert d is not None
    assert gone is not None
    run.cancel(gone)
    run.cancel_again(gone)
    run.spread()
    yield
    # The id is free, and taken again in the same slot file.
    run.cancel(b)
    b = run.put(later, b"again", "named")
    e = run.put(soon, b"e", "soon", soon=True)
    assert b is not None
    assert e is not None
    run.deliver(a)
    run.cancel(d)
    run.spread()
    run.remove()
    yield
    run.cancel_again(d)
    run.cancel(e)
    f = run.put(soon, b"f", soon=True)
    assert f is not None
    run.spread()
    run.remove()
    yield
    run.put(latest, b"g", "far")
    run.close()
    run.open()
    run.check()
    yield
    # What was due soon is in slot files now.
    i = run.put(soon, b"i")
    assert i is not None
    run.deliver(f)
    run.cancel(c)
    h = run.put(later, b"h")
    assert h is not None
    run.spread_soon()
    run.remove()
    run.spread()
    run.deliver(b)
    run.deliver(h)
    run.deliver(i)
    run.spread()
    run.remove()
    assert set(run.promised.values()) == {(latest, "far", b"g")}


@pytest.fixture(autouse=True)
def _same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.randbits", Random(0).getrandbits)
    monkeypatch.setattr("secrets.token_bytes", Random(0).randbytes)


def run_until_power_cut(operation: int) -> StoreRun:
    disk = SimulatedDisk()
    disk.cut_power_at = operation
    run = StoreRun(disk)
    try:
        run.open()
        for _ in script(run):
            pass
    except PowerCut:
        pass
    return run


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_or_doubled_wherever_the_power_goes_off(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = 1 + part
    while (run := run_until_power_cut(operation)).disk.off:
        for survival in [
            NOTHING,
            EVERYTHING,
            *(Survival(Random(f"{operation} {n}")) for n in range(CHOICES)),
        ]:
            found = run.after_power_cut(survival)
            monkeypatch.setattr("purgatory.delayed.storage.store._LONG", survival.random.choice(LONG))
            found.open()
            found.check()
            found.check_deliveries()
        operation += PARTS
    assert operation > 150


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_is_lost_or_doubled_if_the_power_goes_off_again_and_again_during_recovery(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = 1 + part
    while (run := run_until_power_cut(operation)).disk.off:
        random = Random(operation)
        survival = Survival(random)
        for _ in range(CHOICES):
            found = run
            for _ in range(random.randint(1, 3)):
                found = found.after_power_cut(survival)
                monkeypatch.setattr("purgatory.delayed.storage.store._LONG", random.choice(LONG))
                found.disk.cut_power_at = random.randint(1, 60)
                with suppress(PowerCut):
                    found.open()
                    found.spread_soon()
                    found.spread()
            found = found.after_power_cut(survival)
            found.open()
            found.check()
            found.check_deliveries()
        operation += PARTS
