"""The cost of a view can be measured, of few operations."""

from __future__ import annotations

import sys

import pytest

from benchmarks import dashboard


def test_a_view_is_measured_of_operations_in_every_shape(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["dashboard", "200"])
    dashboard.main()
    shown = capsys.readouterr().out
    assert "A view of 200 pending operations" in shown
    for shape in dashboard.SHAPES:
        assert shape in shown
