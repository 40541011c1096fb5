"""How the collector was set before a measurement, it is after."""

from __future__ import annotations

import gc

import pytest

from benchmarks.collector_setting import ADVISED_THRESHOLDS, CollectorSetting


def as_set() -> tuple[bool, tuple[int, int, int], bool]:
    return gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 0


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize(
    ("setting", "meanwhile"),
    [
        (CollectorSetting.ADVISED, (True, ADVISED_THRESHOLDS, True)),
        (CollectorSetting.DEFAULT, (True, gc.get_threshold(), False)),
        (CollectorSetting.OFF, (False, gc.get_threshold(), False)),
    ],
)
def test_it_is_set_as_it_is_called_and_then_as_it_was(
    setting: CollectorSetting, meanwhile: tuple[bool, tuple[int, int, int], bool], frozen: bool
) -> None:
    gc.unfreeze()
    if frozen:
        gc.freeze()
    before = as_set()
    with setting.applied():
        assert as_set() == (*meanwhile[:2], meanwhile[2] or frozen)
    assert as_set() == before
