"""The notices about windows, gaps and control limits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from purgatory.pipeline.watch.control_chart import MIN_BASELINE, SHIFT_RUN
from purgatory.pipeline.watch.monitor import HEADER, Gap, Monitor, Window

SECOND = 1_000_000
NOON = 1_772_366_400 * SECOND


def window(start: int, expired: int = 10, **changed: object) -> Window:
    """A window of ten seconds that begins `start` seconds after noon."""
    plain = Window(
        start=NOON + start * SECOND,
        end=NOON + (start + 10) * SECOND,
        purgatory="fetch",
        kind="Fetch",
        operations=1000,
        expired=expired,
        wait_p50_us=1_500.0,
        wait_p99_us=2_500_000.0,
        lateness_p99_us=900.0,
        tries_per_operation=1.25,
        latest=NOON + (start + 10) * SECOND - 1,
    )
    return replace(plain, **changed)  # type: ignore[arg-type]  # what a test names


@pytest.fixture
def monitor() -> Monitor:
    return Monitor(15 * SECOND)


def update(monitor: Monitor, *windows: Window) -> list[str]:
    """The lines that the windows cause."""
    return list(map(str, monitor.update(windows)))


def open_windows(monitor: Monitor) -> list[str]:
    return list(map(str, monitor.open_windows()))


def steady(monitor: Monitor, first: int, count: int, expired: int = 10) -> list[str]:
    return [line for each in range(count) for line in update(monitor, window(first + 10 * each, expired))]


def test_a_line_has_its_columns_below_their_headers(monitor: Monitor) -> None:
    (line,) = update(monitor, window(0), window(30, latest=NOON + 30 * SECOND))
    assert line == (
        "2026-03-01 12:00:00       1,000    1.0 %   1.50 ms    2.50 s    900 µs      1.25  Fetch in fetch"
    )
    for name, value in {"operations": "1,000", "expired": "1.0 %", "late p99": "900 µs"}.items():
        assert HEADER.index(name) + len(name) == line.index(value) + len(value)
    assert HEADER.index("kind in") == line.index("Fetch in")


def test_a_window_is_reported_when_an_operation_ended_lateness_after_it(monitor: Monitor) -> None:
    assert not update(monitor, window(0))
    assert not update(monitor, window(20, latest=NOON + 25 * SECOND - 1))
    (line,) = update(monitor, window(20, latest=NOON + 25 * SECOND))
    assert line.startswith("2026-03-01 12:00:00")


def test_a_window_is_reported_once_in_its_last_state(monitor: Monitor) -> None:
    for count in (7, 9, 8):
        assert not update(monitor, window(0, operations=count, expired=0))
    (line,) = update(monitor, window(30))
    assert "         8    0.0 %" in line
    assert not update(monitor, window(30))


@pytest.mark.parametrize(
    ("expired", "printed"), [(0, "  0.0 %"), (1, "< 0.1 %"), (99_999, " 99.9 %"), (100_000, "100.0 %")]
)
def test_only_none_is_0_percent_and_only_all_are_100_percent(
    expired: int, printed: str, monitor: Monitor
) -> None:
    update(monitor, window(0, operations=100_000, expired=expired))
    (line,) = update(monitor, window(30))
    assert f"   100,000  {printed}  " in line


def test_windows_are_reported_in_order_and_for_each_kind(monitor: Monitor) -> None:
    lines = list(
        update(monitor, window(60), window(10), window(0, kind="Zeta"), window(0), window(0, purgatory="a"))
    )
    assert [(line[11:19], line[HEADER.index("kind") :]) for line in lines] == [
        ("12:00:00", "Fetch in a"),
        ("12:00:00", "Fetch in fetch"),
        ("12:00:00", "Zeta in fetch"),
        ("12:00:10", "Fetch in fetch"),
    ]


def test_without_expirations_the_lateness_is_empty(monitor: Monitor) -> None:
    (line,) = update(monitor, window(0, lateness_p99_us=None), window(60))
    assert line.endswith("   2.50 s                1.25  Fetch in fetch")


def test_open_windows_are_reported_again_when_they_have_changed(monitor: Monitor) -> None:
    assert not open_windows(monitor)
    update(monitor, window(0, operations=500), window(10))
    first, second = open_windows(monitor)
    assert first.startswith("2026-03-01 12:00:00         500")
    assert first.endswith("Fetch in fetch, so far")
    assert second.startswith("2026-03-01 12:00:10")
    assert not open_windows(monitor)
    update(monitor, window(0, operations=600))
    assert [line[:33] for line in open_windows(monitor)] == ["2026-03-01 12:00:00         600  "]
    (closed,) = update(monitor, window(20, latest=NOON + 25 * SECOND))
    assert "so far" not in closed


def test_operations_for_a_closed_window_are_counted_as_late(monitor: Monitor) -> None:
    update(monitor, window(60, operations=100, latest=NOON + 65 * SECOND))
    assert not list(monitor.record_read(100))
    # An empty batch, and one of older windows, of which the second is open.
    assert not update(monitor)
    assert not list(monitor.record_read(0))
    assert not update(monitor, window(40, operations=7), window(50, operations=20))
    (late,) = monitor.record_read(7 + 20)
    assert str(late) == (
        "LATE 7 operations that ended before 2026-03-01 12:00:50 came after their windows were closed, and "
        "are not counted; use a longer --lateness to wait for them"
    )
    assert [line[:19] for line in open_windows(monitor)] == ["2026-03-01 12:00:50", "2026-03-01 12:01:00"]


def test_operations_that_spark_has_dropped_are_late(monitor: Monitor) -> None:
    update(monitor, window(0, operations=10))
    assert not list(monitor.record_read(10))
    # Of five that are read, one is in the window, which has the ten of before.
    update(monitor, window(0, operations=11))
    (late,) = monitor.record_read(5)
    assert late.values["operations"] == 4
    (late,) = monitor.record_read(1)
    assert str(late).startswith("LATE 1 operation that")


def test_the_number_of_late_operations_is_right_even_if_it_comes_after_more_windows(
    monitor: Monitor,
) -> None:
    update(monitor, window(0, operations=10))
    update(monitor, window(0, operations=30))
    # Twelve were read for the first update, two of them late.
    assert not list(monitor.record_read(12))
    (late,) = monitor.record_read(20)
    assert late.values["operations"] == 2


def test_a_gap_is_reported_and_marks_the_windows_that_it_overlaps(monitor: Monitor) -> None:
    gap = Gap("a", NOON + 9 * SECOND, NOON + 10 * SECOND, 1234, 5)
    assert list(map(str, monitor.record_gaps([gap]))) == [
        "INCOMPLETE a lost 1,234 operations and 5 checks from 2026-03-01 12:00:09 to 2026-03-01 12:00:10"
    ]
    list(monitor.record_gaps([Gap("b", NOON + 60 * SECOND, NOON + 60 * SECOND, 1, 0)]))
    assert not update(monitor, window(0), window(10))
    lines = update(monitor, window(20), window(60))
    assert ["(incomplete)" in line for line in lines] == [True, True, False]
    (line,) = open_windows(monitor)
    assert line.endswith("so far (incomplete)")


def test_a_ratio_outside_the_limits_is_reported_once_and_again_when_it_recovers(monitor: Monitor) -> None:
    quiet = steady(monitor, 0, MIN_BASELINE + 5)
    assert not [line for line in quiet if not line.startswith("2026")]
    lines = steady(monitor, 200, 3, expired=100) + steady(monitor, 230, 6)
    kinds = [line.split()[0] for line in lines if not line.startswith("2026")]
    assert kinds == ["WARNING", "RECOVERED"]
    warning, back = (line for line in lines if not line.startswith("2026"))
    assert warning.startswith(
        "WARNING 2026-03-01 12:03:20 Fetch in fetch: 10.0 % of 1,000 expired, outside the control limits, 0."
    )
    assert warning.endswith("around 1.0 %")
    assert back.startswith(
        "RECOVERED 2026-03-01 12:03:50 Fetch in fetch: 1.0 % of 1,000 expired, inside the control limits"
    )
    # The warning follows its window.
    assert lines[lines.index(warning) - 1].startswith("2026-03-01 12:03:20")


def test_each_kind_has_its_own_control_chart(monitor: Monitor) -> None:
    for start in range(0, 200, 10):
        update(monitor, window(start), window(start, kind="Expiring", expired=1000))
    lines = update(monitor, window(400, expired=1000), window(400, kind="Expiring", expired=1000))
    lines += update(monitor, window(500, kind="Other"))
    assert [line.split(": ")[0] for line in lines if line.startswith("WARNING")] == [
        "WARNING 2026-03-01 12:06:40 Fetch in fetch"
    ]


def test_a_ratio_that_stays_outside_becomes_the_baseline(monitor: Monitor) -> None:
    steady(monitor, 0, MIN_BASELINE)
    lines = steady(monitor, 10 * MIN_BASELINE, SHIFT_RUN + MIN_BASELINE, expired=100)
    warning, shifted = (line for line in lines if not line.startswith("2026"))
    assert warning.startswith("WARNING")
    assert shifted.startswith("SHIFTED")
    assert f"{SHIFT_RUN} windows were outside the limits" in shifted
    again = steady(monitor, 1000, 5, expired=10)
    assert [line.split()[0] for line in again if not line.startswith("2026")] == ["WARNING"]


def test_control_characters_in_names_are_replaced(monitor: Monitor) -> None:
    update(monitor, window(0, kind="a\nWARNING", purgatory="\x1b[2J"))
    (line,) = open_windows(monitor)
    assert line.endswith("a\ufffdWARNING in \ufffd[2J, so far")
    (line,) = map(str, monitor.report_rejected(1, 2, "no\nsuch"))
    assert line.startswith("REFUSED 1 unreadable file and 2 rows, such as: no\ufffdsuch; purgatory-pipeline")


def test_a_window_is_an_object_for_programs(monitor: Monitor) -> None:
    list(monitor.record_gaps([Gap("a", NOON, NOON, 1, 0)]))
    closed, *_ = monitor.update([window(0, lateness_p99_us=None), window(30)])
    (left,) = monitor.open_windows()

    assert json.loads(closed.as_json()) == {
        "event": "window",
        "from": "2026-03-01T12:00:00Z",
        "to": "2026-03-01T12:00:10Z",
        "purgatory": "fetch",
        "kind": "Fetch",
        "operations": 1000,
        "expired": 10,
        "wait_p50_us": 1500.0,
        "wait_p99_us": 2500000.0,
        "lateness_p99_us": None,
        "tries_per_operation": 1.25,
        "closed": True,
        "incomplete": True,
    }
    assert (left.values["closed"], left.values["incomplete"]) == (False, False)


def test_a_warning_is_an_object_with_the_limits(monitor: Monitor) -> None:
    steady(monitor, 0, MIN_BASELINE + 5)
    notices = [*monitor.update([window(200, expired=100)]), *monitor.update([window(230)])]
    (warning,) = (each for each in notices if each.event == "warning")

    assert warning.values["expired"] == 100
    assert warning.values["fewest"] <= 10 <= warning.values["most"] < 100
    assert warning.values["usual_share"] == pytest.approx(0.01, rel=0.01)


def test_all_other_messages_are_objects_too(monitor: Monitor) -> None:
    (refused,) = monitor.report_rejected(1, 2, "no\nsuch")
    (gap,) = monitor.record_gaps([Gap("a", NOON, NOON + 500_000, 3, 4)])
    (late,) = monitor.record_read(1)

    assert [json.loads(each.as_json()) for each in (refused, gap, late)] == [
        {"event": "refused", "files": 1, "rows": 2, "example": "no\nsuch"},
        {
            "event": "incomplete",
            "from": "2026-03-01T12:00:00Z",
            "to": "2026-03-01T12:00:00.500000Z",
            "node": "a",
            "lost_operations": 3,
            "lost_checks": 4,
        },
        {"event": "late", "operations": 1, "closed_until": "1970-01-01T00:00:00Z"},
    ]


def test_its_repr_has_the_number_of_windows_and_strata(monitor: Monitor) -> None:
    update(monitor, window(0), window(60))
    assert repr(monitor) == "<Monitor: 1 windows open, 1 strata>"
