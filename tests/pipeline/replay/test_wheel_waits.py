"""The waits on wheels, and the partition of their time into intervals."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.replay.reaper import NEVER, Wait
from purgatory.pipeline.replay.wheel_waits import WAITS, intervals
from purgatory.pipeline.sql import select
from tests.pipeline.journals import NOON, Row, operation, segment
from tests.pipeline.parts import result
from tests.pipeline.replay.wheels import waited

SECOND = 1_000_000
AT_NOON = round(NOON.timestamp()) * SECOND


def test_the_time_of_operations_on_a_wheel() -> None:
    never, at_once = {"timeout_us": None}, {"timeout_us": 0}
    completed = {"outcome": "completed", "lateness_us": None, "tries": 2}
    at_first_try = completed | {"tries": 1, "timeout_us": 5000}
    closed = {"outcome": "expired", "lateness_us": None}
    cases: list[tuple[Row, Wait | None]] = [
        # Operations that are on no wheel.
        (completed | never, None),
        (closed | at_once, None),
        # No writer records this.
        (at_once | {"waited_us": 100, "lateness_us": 100}, None),
        (completed | {"waited_us": 0}, None),
        (completed | {"timeout_us": 1 << 54}, None),
        (at_first_try | {"waited_us": 999}, None),
        (at_first_try | {"waited_us": 999, "outcome": "failed"}, None),
        # Operations that end after one try and were on a wheel.
        (at_first_try | {"waited_us": 1000}, (0, 5000, 1000)),
        (at_first_try | {"waited_us": 999, "outcome": "cancelled"}, (0, 5000, 999)),
        # Operations that end before their timeout, also by closing.
        (completed | {"timeout_us": 500, "waited_us": 300}, (0, 500, 300)),
        (closed | {"timeout_us": 500, "waited_us": 20}, (0, 500, 20)),
        # An operation that expires.
        ({"timeout_us": 500, "waited_us": 600, "lateness_us": 100}, (0, 500, None)),
        # Rescheduled operations: to 700, and to a deadline after 600.
        ({"timeout_us": 500, "waited_us": 800, "lateness_us": 100}, (200, 700, None)),
        (completed | {"timeout_us": 500, "waited_us": 600}, (100, 600, 600)),
    ]
    rows = [operation(node=str(number), **case) for number, (case, _) in enumerate(cases)]
    found = select(WAITS, segment(OPERATIONS, rows)).to_pylist()
    waits = {row["node"]: row for row in found}

    for number, (case, wait) in enumerate(cases):
        row = waits.get(str(number))
        moments = row and (row["entered_us"], row["deadline_us"], row["left_us"])
        assert moments == (wait and tuple(t if t is None else AT_NOON + t for t in wait)), case


def bounds(found: pa.Table) -> dict[str, list[tuple[int, int]]]:
    of_wheels = defaultdict(list)
    for row in found.sort_by("since_us").to_pylist():
        assert row["node"] == "n"
        of_wheels[row["purgatory"]].append((row["since_us"], row["until_us"]))
    return of_wheels


def seconds(*instants: float) -> Wait:
    entered, deadline, *left = (round(instant * SECOND) for instant in instants)
    return entered, deadline, left[0] if left else None


def test_intervals_begin_where_the_state_of_the_alarm_is_known() -> None:
    histories = {
        # Each wait is over before the next one begins.
        "quiet": [seconds(9.1, 20, 9.2), seconds(10.3, 20, 10.4), seconds(11.5, 20, 11.6)],
        # Two expire in one second. When another leaves or begins, the alarm is unknown.
        "expiring": [seconds(9, 10.5), seconds(9, 10.7), seconds(9, 50, 12.5), seconds(11, 30, 20)],
        # One wait is pending all the time.
        "pending": [seconds(9, 50, 40), *(seconds(t, 60, t + 0.1) for t in (20, 30, 40))],
        # With a tick of a tenth of a second, the first may still be pending.
        "expiring late": [seconds(9, 9.95), seconds(10, 30, 10.1), seconds(10.2, 30, 10.3)],
    }
    # So that less than one wait is pending on average.
    at_last = seconds(1000, 1001, 1000.1)
    waits = [waited(("n", name), wait) for name, own in histories.items() for wait in [*own, at_last]]

    found = bounds(result(intervals(coarsest_us=100_000, size=1), segment(OPERATIONS, waits)))

    assert {name: [since / SECOND for since, _ in found[name]] for name in histories} == {
        "quiet": [9, 10.3, 11.5, 1000],
        "expiring": [9, 10.5, 1000],
        "pending": [9, 40, 1000],
        "expiring late": [9, 1000],
    }
    for parts in found.values():
        assert [until for _, until in parts] == [*(since for since, _ in parts[1:]), NEVER]


def test_intervals_have_the_requested_size_and_are_longer_if_many_waits_are_pending() -> None:
    # Ten begin in each second.
    brief = [seconds(10 + t / 10, 999, 10.05 + t / 10) for t in range(100)]
    # 48 of these are pending on average, and one expires each second.
    lasting = [
        seconds(10 + t / 10, 15 + t / 10 if t % 10 == 0 else 999, *[15 + t / 10] * (t % 10 > 0))
        for t in range(1000)
    ]
    waits = [
        waited(("n", name), wait) for name, own in (("brief", brief), ("lasting", lasting)) for wait in own
    ]
    operations = segment(OPERATIONS, waits)

    found = bounds(result(intervals(coarsest_us=1000, size=30), operations))

    assert [since // SECOND for since, _ in found["brief"]] == [10, 13, 16, 19]
    assert [since // SECOND for since, _ in found["lasting"]] == [10, 30, 49, 68, 87, 106]
    newest = result(intervals(coarsest_us=1000, newest=20, size=10), operations)
    assert bounds(newest) == {
        "brief": [(18 * SECOND, 19 * SECOND), (19 * SECOND, NEVER)],
        "lasting": [(108 * SECOND, NEVER)],
    }
    recorded = {row["purgatory"]: row["recorded"] for row in newest.to_pylist()}
    assert recorded == {"brief": 100, "lasting": 1000}
