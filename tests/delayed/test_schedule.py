"""The constants of time depend on each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from purgatory.delayed import schedule
from purgatory.delayed.schedule import AHEAD, SET_BACK, SOON, TURN, horizon, last_soon, slot_of

times = st.integers(-schedule.FARTHEST, schedule.FARTHEST)
spans = st.integers(0, 10 * schedule.DAY)
slots = st.integers(1, 400 * schedule.DAY)


@given(times, slots, spans, spans)
def test_no_message_that_is_soon_looks_like_one_of_a_wrong_clock_when_the_store_is_opened(
    now: int, slot_ms: int, until_due: int, closed: int
) -> None:
    is_soon = slot_of(now + until_due, slot_ms) < horizon(now, slot_ms)
    looks_right = now + until_due <= last_soon(now + closed - SET_BACK, slot_ms)
    assert looks_right or not is_soon


@given(times, slots)
def test_a_message_is_soon_in_the_turn_before_the_one_in_which_it_is_read(due: int, slot_ms: int) -> None:
    # It has missed a turn by a moment.
    next_turn = due - SOON + TURN
    assert slot_of(due, slot_ms) < horizon(next_turn, slot_ms)
    # Its slot is indexed in this time.
    assert due - AHEAD - next_turn >= TURN - AHEAD > 0


@given(times, slots)
def test_a_slot_that_is_soon_stays_soon(now: int, slot_ms: int) -> None:
    assert slot_of(now, slot_ms) < horizon(now, slot_ms) <= horizon(now + 1, slot_ms)


def test_a_step_of_the_clock_is_noticed_before_a_message_that_was_read_is_due() -> None:
    assert schedule.STEP < schedule.LOOK < AHEAD / 1000
    assert schedule.BETWEEN_READS < schedule.LOOK


def test_a_full_disk_is_tried_again_before_the_next_turn() -> None:
    assert schedule.NOTE < schedule.FULL_DISK < TURN / 1000


def test_a_message_that_cannot_be_read_is_read_many_times_before_it_is_lost() -> None:
    assert schedule.UNREADABLE * 100 < schedule.LOST


def test_a_durable_operation_ends_before_its_message_is_read() -> None:
    assert schedule.GRACE >= AHEAD / 1000
    assert schedule.NEVER * 1000 < schedule.FARTHEST - 2 * schedule.DAY * 365 * 1000


def test_an_id_is_kept_for_longer_than_the_log_has_its_message() -> None:
    assert schedule.DAY > SOON + SET_BACK + schedule.LOST * 1000
