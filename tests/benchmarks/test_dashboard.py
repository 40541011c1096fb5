"""The cost of a view can be measured, of few operations."""

from __future__ import annotations

import pytest

from benchmarks import dashboard


def test_a_view_is_measured_of_operations_in_every_shape(capsys: pytest.CaptureFixture[str]) -> None:
    dashboard.main(["200"])
    shown = capsys.readouterr().out
    assert "A view of 200 pending operations" in shown
    for shape in dashboard.SHAPES:
        assert shape in shown
