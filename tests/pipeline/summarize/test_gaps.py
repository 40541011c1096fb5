"""Minutes that gaps overlap."""

from __future__ import annotations

from typing import Any

from purgatory.pipeline.summarize.gaps import GAP_MINUTES, mark_gaps
from purgatory.pipeline.summarize.minutes import MINUTES
from tests.pipeline.parts import result


def test_each_minute_that_a_gap_overlaps_has_the_nodes_and_their_losses(gaps: Any, collected: Any) -> None:
    found = result(
        GAP_MINUTES,
        gaps(
            {"node": "b", "began": 59, "ended": 121, "lost_operations": 5, "lost_checks": 1},
            {"node": "a", "began": 60, "ended": 60, "lost_operations": 2},
            {"node": "a", "began": 70, "ended": 80, "lost_operations": 2},
        ),
    )

    assert [tuple(row.values()) for row in collected(found)] == [
        (0.0, ["b"], 5, 1),
        (120.0, ["b"], 5, 1),
        (60.0, ["a", "b"], 9, 1),
    ]


def test_rows_of_a_minute_that_a_gap_overlaps_are_marked_and_no_row_is_added(
    operations: Any, gaps: Any, collected: Any
) -> None:
    by_minute = result(MINUTES, operations({}, {"kind": "Other"}, {"started": 60}, {"started": 120}))
    overlapped = result(GAP_MINUTES, gaps({"began": 110, "ended": 130}, {"began": 600, "ended": 601}))

    marked = mark_gaps(by_minute, overlapped)

    assert [(row["minute"], row["kind"], row["incomplete"]) for row in collected(marked)] == [
        (0.0, "Fetch", False),
        (0.0, "Other", False),
        (120.0, "Fetch", True),
        (60.0, "Fetch", True),
    ]
