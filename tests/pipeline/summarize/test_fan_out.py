"""The fan-out of checks by minute."""

from __future__ import annotations

from typing import Any

import pytest

from purgatory.pipeline.summarize.fan_out import FAN_OUT
from tests.pipeline.parts import result


def test_each_minute_has_the_fan_out_of_its_checks(checks: Any, collected: Any) -> None:
    found = result(
        FAN_OUT,
        checks(
            *[{"tried": 10, "completed": 2}] * 98,
            {"tried": 20, "completed": 20},
            {"tried": 30},
            {"checked": 60, "tried": 5001, "completed": 5000},
            {"checked": 60, "tried": 0, "purgatory": "produce"},
        ),
    )

    counted = found.drop(["first_us", "last_us"])
    assert [tuple(row.values()) for row in collected(counted)] == [
        (0.0, "fetch", 100, 1030, 216, 10, pytest.approx(20.1), 30),
        # Quantiles are those of bins of four; the other values are exact.
        (60.0, "fetch", 1, 5001, 5000, 5000, 5000, 5001),
        (60.0, "produce", 1, 0, 0, 0, 0, 0),
    ]
