"""What is the same for all of a run."""

from __future__ import annotations

import pytest

from benchmarks.question import Contender, Sample
from benchmarks.setting import Setting


def nothing() -> Sample:
    return {}


def test_purgatory_is_measured_in_each_build_where_that_tells_something() -> None:
    setting = Setting()
    assert list(setting.contenders("tasks", "purgatory", nothing)) == [
        Contender("tasks", "purgatory", nothing, "compiled")
    ]
    assert list(setting.contenders("tasks", "purgatory", nothing, interpreted=True)) == [
        Contender("tasks", "purgatory", nothing, "compiled"),
        Contender("tasks", "purgatory, interpreted", nothing, "interpreted"),
    ]


def test_without_a_compiled_build_the_interpreted_one_is_measured_alone() -> None:
    setting = Setting(builds=("interpreted",))
    for interpreted in (False, True):
        assert list(setting.contenders("tasks", "purgatory", nothing, interpreted=interpreted)) == [
            Contender("tasks", "purgatory, interpreted", nothing, "interpreted")
        ]


def test_what_has_no_core_in_it_is_measured_once() -> None:
    assert list(Setting().contenders("tasks", "a list", nothing, interpreted=True)) == [
        Contender("tasks", "a list", nothing)
    ]


def test_a_setting_survives_json() -> None:
    setting = Setting("uvloop", ("interpreted",), full=True, sizes=(20, 10), times=7, seconds=0.5)
    assert Setting.from_json(setting.to_json()) == setting


def test_what_is_not_said_is_as_usual() -> None:
    assert Setting.from_json('{"loop": "uvloop"}') == Setting("uvloop")


def test_what_no_setting_has_is_refused() -> None:
    with pytest.raises(TypeError, match="sises"):
        Setting.from_json('{"sises": [10]}')
