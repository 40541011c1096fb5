"""What the benchmark of the three designs takes for its figures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import anyio
import pytest

from benchmarks.harness.benchmark import Setting
from benchmarks.suites.delayed import service
from benchmarks.suites.delayed.processes import Processes
from benchmarks.suites.delayed.service import COMPRESSION, LOOK, lateness, plan_of, watch
from examples.delayed.demo import round as demo
from examples.delayed.demo.deliveries import Figures
from examples.delayed.demo.process import Brokers
from examples.delayed.demo.round import Outcome, Round
from examples.delayed.service import DESIGNS
from examples.delayed.topics import LEVELS

MIB = 2**20

# A round that is not run only wants to know where they are.
BROKERS = cast("Brokers", SimpleNamespace(bootstrap=""))


class Some(Processes):
    """Processes that use what a test says."""

    def __init__(self) -> None:
        super().__init__([])
        self.seconds, self.bytes = 0.0, 0

    def processor_seconds(self) -> float:
        return self.seconds

    def resident_bytes(self) -> int:
        return self.bytes


def test_delays_and_levels_are_compressed_alike() -> None:
    plan = plan_of("levels", 5_000, 0)
    assert [round(level * COMPRESSION * 1000) for level in plan.levels] == list(LEVELS)
    assert plan.most == plan.levels[-1] == plan.all_levels[-1]
    assert (plan.least * COMPRESSION, plan.most * COMPRESSION) == (1, 7200)


@pytest.mark.parametrize("faults", [("one is missing", "one is early"), ()])
def test_a_round_with_faults_gives_no_figures(faults: tuple[str, ...]) -> None:
    outcome = Outcome("wheel", Figures(3, 0, 3, 0, 1, 2.0, 4.0, 8.0), 0.0, None, faults)
    if faults:
        with pytest.raises(RuntimeError, match="wheel: one is missing; one is early"):
            lateness(outcome)
    else:
        assert lateness(outcome) == {"p50_ms": 2, "p99_ms": 4, "max_ms": 8, "early": 0, "twice": 1}


async def test_memory_counts_at_its_peak_and_processor_time_from_the_load_on(tmp_path: Path) -> None:
    round, some, used = Round(plan_of("wheel", 10, 10), BROKERS, tmp_path), Some(), dict[str, float]()
    some.seconds, some.bytes = 1.0, 100 * MIB
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch, round, some, "service", used)
        await anyio.sleep(LOOK / 2)
        some.bytes = 150 * MIB
        await anyio.sleep(LOOK)
        some.seconds, some.bytes = 3.0, 120 * MIB
        round.loading.set()
        await anyio.sleep(LOOK / 2)
        some.seconds = 7.0
        round.arrived.set()
    assert used == {"service_mib": 50, "service_us": 4 / 10 * 1e6}


async def test_a_process_that_has_ended_gives_no_figures(tmp_path: Path) -> None:
    round, used = Round(plan_of("wheel", 10, 0), BROKERS, tmp_path), dict[str, float]()
    with anyio.fail_after(1):
        await watch(round, Processes([2**22 + 1]), "service", used)
    assert used == {}


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.timeout(600)
@pytest.mark.parametrize("design", DESIGNS)
def test_each_design_gives_figures_with_a_backlog_and_without(
    design: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "COMPRESSION", 1_000)
    monkeypatch.setattr(demo, "_MOVED", 0.5)
    setting = Setting(builds=("interpreted",))
    alone = service.measure(setting, plan_of(design, 200, 0))
    behind = service.measure(setting, plan_of(design, 200, 100))
    for sample in (alone, behind):
        assert sample["early"] == 0
        assert min(sample["p50_ms"], sample["service_us"], sample["brokers_us"], sample["written"]) > 0
    assert "disk" not in alone
    # The other designs keep nothing in files.
    assert (behind["disk"] > 0) == (design == "wheel")
