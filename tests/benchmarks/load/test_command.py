"""The command, from its options to tables and file."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.load import __main__ as command
from benchmarks.load import table
from benchmarks.load.contestant import Contestant, Plans, PythonContestant, generator_alone
from benchmarks.load.distribution import DISTRIBUTIONS, Load
from benchmarks.load.kafka_jvm import KafkaJvm
from benchmarks.load.kafka_package import KafkaMissing
from benchmarks.load.measurement import Measurement
from benchmarks.load.sweep import Sweep
from tests.benchmarks.load.fakes import FakeContestant

GENERATOR = FakeContestant("the generator alone", "interpreted", figures={"cpu_seconds": 0.0})
CONTESTANTS = [
    FakeContestant("purgatory", "compiled"),
    FakeContestant("purgatory", "interpreted", limit=210_000),
    FakeContestant("Kafka's present design", "interpreted", limit=150_000),
    FakeContestant("Kafka 0.8's design", "interpreted", limit=8_000),
    FakeContestant(
        "Kafka 0.9.0.1 itself",
        "JVM",
        figures={"late_p50_ms": None, "late_p99_ms": None, "held": None, "rss_mb": None},
    ),
]


@pytest.fixture
def _faked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is really measured, and there is no Kafka."""

    def no_kafka() -> KafkaJvm:
        raise KafkaMissing("npm, which would fetch it, is not installed")

    monkeypatch.setattr(command, "kafka_jvm", no_kafka)
    monkeypatch.setattr(command, "builds_at_hand", lambda: ("compiled", "interpreted"))
    monkeypatch.setattr(command, "python_contestants", lambda *_: list(CONTESTANTS[:-1]))
    monkeypatch.setattr(command, "generator_alone", lambda _: GENERATOR)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--repetitions", "0"], "must be a whole number from 1 on, not '0'"),
        (["--seconds", "0.01"], "must be a number of seconds from 0.1 to 60, not '0.01'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert error in capsys.readouterr().err


@pytest.mark.usefixtures("_faked")
def test_it_prints_a_line_for_each_measurement_and_one_for_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command.main(["--quick"])
    printed = capsys.readouterr().out.splitlines()
    assert "Kafka's own test is left out: npm, which would fetch it, is not installed." in printed
    assert "p50/p75 20/60 ms, 25,000/s: Kafka 0.8's design, interpreted: 8,000/s" in printed
    # Of four designs and the generator at four rates, twice, without what is saturated before the last.
    assert sum("/s: " in line for line in printed) == 2 * (20 - 2)
    assert max(map(len, printed)) <= 100


@pytest.mark.usefixtures("_faked")
def test_all_figures_are_written(tmp_path: Path) -> None:
    file = tmp_path / "load.json"
    command.main(["--quick", "--repetitions", "2", "--json", str(file)])
    written = json.loads(file.read_text())
    assert {"written", "commit", "machine", "python", "packages"} < written.keys()
    assert written["loop"] == "asyncio"
    assert written["repetitions"] == 2
    load = written["load"]
    assert load["kafka"] == {
        "available": False,
        "reason": "npm, which would fetch it, is not installed",
    }
    first, second = load["distributions"]
    assert (first["p50_ms"], first["p75_ms"], first["timeout_ms"], first["keys"]) == (20, 60, 200, 3)
    assert second["name"] == "p50/p75 200/400 ms"
    assert [curve["build"] for curve in first["curves"]] == ["compiled", *["interpreted"] * 3]
    point = first["curves"][3]["points"][0]
    assert point["target"] == 25_000
    assert point["saturated"] is True
    assert point["achieved"] == [8_000, 8_000]
    assert point["late_p99_ms"] == [12.5, 12.5]
    assert point["held"] == [1234, 1234]
    assert point["rss_mb"] == [5.6, 5.6]
    assert point["cpu_seconds"] == [pytest.approx(0.125)] * 2
    assert [point["target"] for point in first["generator"]["points"]] == list(command.QUICK_RATES)


@pytest.mark.usefixtures("_faked")
def test_a_measurement_that_fails_ends_it_and_leaves_what_was_measured_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Failing(FakeContestant):
        def measure(self, load: Load, plans: Plans) -> Measurement:
            if load.distribution is not DISTRIBUTIONS[0]:
                raise RuntimeError(f"it failed at {load}")
            return super().measure(load, plans)

    monkeypatch.setattr(command, "python_contestants", lambda *_: [Failing("failing", "")])
    file = tmp_path / "load.json"
    with pytest.raises(SystemExit, match=r"^it failed at p50/p75 200/400 ms, 25,000 requests/s$"):
        command.main(["--quick", "--json", str(file)])
    [distribution] = json.loads(file.read_text())["load"]["distributions"]
    assert distribution["p50_ms"] == 20


def test_a_worker_that_fails_is_quoted(tmp_path: Path) -> None:
    contestant = PythonContestant("no such design", "interpreted", "nobody", "asyncio", "interpreted")
    with pytest.raises(
        RuntimeError, match=r"(?s)^no such design, interpreted failed at .*KeyError: 'nobody'"
    ):
        contestant.measure(Load(DISTRIBUTIONS[0], 100, 0.1), Plans(tmp_path))


@pytest.mark.real_time
@pytest.mark.parametrize(
    "contestant",
    [
        PythonContestant("purgatory", "interpreted", "purgatory", "asyncio", "interpreted"),
        generator_alone("asyncio"),
    ],
    ids=str,
)
def test_a_measurement_comes_back_from_its_process(contestant: Contestant, tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    measured = contestant.measure(Load(DISTRIBUTIONS[0], 100, 0.2), plans)
    assert measured.sent > 0
    assert measured.cpu_seconds is not None
    assert measured.completed is None or measured.sent == measured.completed + (measured.expired or 0)


def test_all_contestants_at_a_rate_share_a_plan_and_only_that_one_is_kept(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    first = plans.file(Load(DISTRIBUTIONS[0], 100, 0.1))
    written = first.stat().st_mtime_ns
    assert plans.file(Load(DISTRIBUTIONS[0], 100, 0.1)) == first
    assert first.stat().st_mtime_ns == written
    second = plans.file(Load(DISTRIBUTIONS[1], 100, 0.1))
    assert list(tmp_path.iterdir()) == [second]


def test_the_tables_fit_a_hundred_columns_and_compare_where_all_keep_up() -> None:
    contestants = [*CONTESTANTS[:3], FakeContestant("Kafka 0.8's design", "interpreted", limit=60_000)]
    contestants.append(CONTESTANTS[-1])
    rates = (10_000, 50_000, 100_000, 200_000, 300_000)
    sweep = Sweep(contestants, GENERATOR, rates, 5, lambda contestant, rate: fake(contestant).at(rate))
    for _ in sweep.steps():
        pass
    console = Console(width=100, file=StringIO())
    table.show(DISTRIBUTIONS[0], sweep, console)
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue().splitlines()
    assert max(map(len, shown)) <= 100
    # What rich puts in place of what does not fit.
    assert "\N{HORIZONTAL ELLIPSIS}" not in console.file.getvalue()
    assert "At 50,000 requests a second" in [line.strip() for line in shown]
    [kafka_08] = [line.split() for line in shown if line.startswith("Kafka 0.8's design ")]
    assert kafka_08[3:] == [
        "50,000/s",
        "5.00",
        "(5.00-5.00)",
        "1.00",
        "12.5",
        "(12.5-12.5)",
        "1.0",
        "1,234",
        "6",
    ]
    [kafka] = [line.split() for line in shown if line.startswith("Kafka 0.9.0.1 itself ")]
    assert kafka[3:] == ["300,000/s", "5.00", "(5.00-5.00)", "1.00", "-", "-", "-", "-"]
    [last] = [line.split() for line in shown if line.strip().startswith("300 ")]
    # Kafka 0.8's design was given up before.
    purgatory, kafka_now = ["300", "(300-300)", "210", "(210-210)", "*"], ["150", "(150-150)", "*"]
    assert last == ["300", *purgatory, *kafka_now, "300", "(300-300)"]


def fake(contestant: Contestant) -> FakeContestant:
    assert isinstance(contestant, FakeContestant)
    return contestant
