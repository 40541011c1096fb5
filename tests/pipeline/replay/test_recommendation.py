"""The recommended setting, and the sentence that explains it."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature

from purgatory import Purgatory
from purgatory.pipeline.replay.recommendation import DEFAULT, ReplayedSetting, recommend
from tests.pipeline.journals import NOON

DEFAULTS = ReplayedSetting(
    purgatory="fetch",
    tick_us=DEFAULT.tick_us,
    wheel_size=DEFAULT.wheel_size,
    since=NOON,
    until=NOON,
    operations=10_000,
    wakeups=1_500,
    moves=2_000,
    fullest_slot=9,
    levels=2,
    expired=100,
    lateness_mean_us=500.0,
    lateness_p99_us=990.0,
    lateness_max_us=999,
    pareto=False,
)
FINE = replace(DEFAULTS, wheel_size=512, moves=0, pareto=True)
COARSE = replace(FINE, tick_us=10_000, wakeups=2, lateness_p99_us=9_900.0)
COARSER = replace(COARSE, tick_us=20_000, wakeups=1, lateness_p99_us=19_800.0)
ALL = [DEFAULTS, FINE, COARSE, COARSER]


def test_the_default_is_that_of_a_purgatory() -> None:
    defaults = signature(Purgatory).parameters
    assert round(defaults["tick"].default * 1e6) == DEFAULT.tick_us
    assert defaults["wheel_size"].default == DEFAULT.wheel_size


def test_the_setting_with_the_least_work_and_acceptable_lateness_is_recommended() -> None:
    recommendation = recommend(ALL, 10_000)

    assert recommendation.chosen is COARSE
    assert recommendation.sentence() == (
        "Take a tick of 10 ms and 512 slots for fetch. For 10,000 operations its reaper wakes twice "
        "and makes 0 moves. With the default, a tick of 1 ms and 60 slots, it wakes 1,500 times and makes "
        "2,000 moves. Each wake-up and each move takes time of the event loop, and the service gets this "
        "time. 99 % of the expirations are at most 9.90 ms late, and 990 µs with the default. No setting "
        "that is at most 10.0 ms late makes less work."
    )
    assert recommend(ALL, 20_000).chosen is COARSER
    assert "wakes once and" in recommend(ALL, 20_000).sentence()


def test_only_settings_in_the_pareto_set_are_recommended() -> None:
    assert recommend([DEFAULTS, FINE, replace(COARSE, pareto=False)], 10_000).chosen is FINE


def test_if_all_settings_are_too_late_the_least_late_one_is_recommended() -> None:
    recommendation = recommend(ALL, 100)

    assert recommendation.chosen is FINE
    assert recommendation.sentence().endswith(
        " No setting is at most 100 µs late, and none is less late than this one."
    )


def test_the_default_is_kept_if_little_work_is_saved() -> None:
    # One hundredth of the operations is 100.
    almost = replace(FINE, wakeups=DEFAULTS.work - 99)
    recommendation = recommend([DEFAULTS, almost], 10_000)
    assert recommendation.chosen is DEFAULTS
    assert recommendation.sentence() == (
        "Keep the default for fetch, a tick of 1 ms and 60 slots. For 10,000 operations its reaper wakes "
        "1,500 times and makes 2,000 moves. No setting that is at most 10.0 ms late saves a wake-up or a "
        "move for every hundred operations."
    )
    enough = replace(FINE, wakeups=DEFAULTS.work - 100)
    assert recommend([DEFAULTS, enough], 10_000).chosen is enough


def test_a_default_that_is_too_late_is_not_kept() -> None:
    finer = replace(FINE, tick_us=100, lateness_p99_us=99.0, wakeups=DEFAULTS.work)
    recommendation = recommend([DEFAULTS, finer], 500)
    assert recommendation.chosen is finer
    assert " Operations expire sooner after their deadlines. " in recommendation.sentence()
    assert "gets this time" not in recommendation.sentence()


def test_a_long_tick_and_a_single_move_are_in_plain_words() -> None:
    hour = replace(COARSE, tick_us=3_600_000_000, wheel_size=2048, operations=1, moves=1)
    sentence = recommend([replace(DEFAULTS, operations=1), hour], 10_000).sentence()
    assert "a tick of 3,600,000 ms and 2,048 slots" in sentence
    assert "For 1 operation its reaper wakes twice" in sentence
    assert "makes 1 move. With" in sentence


def test_if_no_operation_expired_the_tick_bounds_the_lateness() -> None:
    nothing = [
        replace(each, expired=0, lateness_mean_us=None, lateness_p99_us=None, lateness_max_us=None)
        for each in ALL
    ]

    recommendation = recommend(nothing, 10_000)

    assert recommendation.chosen == nothing[2]
    assert " No operation expired, but one could be up to 10.0 ms late. " in recommendation.sentence()
