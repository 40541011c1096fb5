"""What the demo's check sees."""

from __future__ import annotations

from examples.delayed.demo.deliveries import Deliveries


def test_a_record_that_arrives_once_and_in_time_is_right() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-0", 1_000)
    assert not deliveries.is_complete
    deliveries.arrive("0-0", 1_000, 1_000, 1_005.0)
    assert deliveries.is_complete
    figures = deliveries.figures()
    assert (figures.scheduled, figures.pending, figures.delivered, figures.worst) == (1, 0, 1, 5.0)
    assert list(deliveries.faults()) == []


def test_a_record_may_arrive_before_its_sender_knows_its_id() -> None:
    deliveries = Deliveries()
    deliveries.arrive("0-0", 1_000, 1_000, 1_005.0)
    deliveries.acknowledge("0-0", 1_000)
    assert deliveries.is_complete
    assert list(deliveries.faults()) == []


def test_a_record_that_is_missing_is_a_fault() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-7", 1_000)
    assert list(deliveries.faults()) == ["1 records were acknowledged and have not arrived, such as 0-7"]


def test_a_record_that_was_written_before_it_was_due_is_a_fault() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-0", 1_000)
    deliveries.arrive("0-0", 1_000, 999, 1_000.0)
    assert deliveries.figures().early == 1
    assert list(deliveries.faults()) == ["1 records arrived early, such as 0-0"]


def test_a_record_with_another_due_time_than_it_was_sent_with_is_a_fault() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-0", 1_000)
    deliveries.arrive("0-0", 900, 950, 950.0)
    assert list(deliveries.faults()) == ["1 records arrived with another due time, such as 0-0"]


def test_a_record_that_is_cancelled_in_time_must_not_arrive() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-0", 1_000)
    deliveries.cancel("0-0", 999.0)
    assert deliveries.is_complete
    figures = deliveries.figures()
    assert (figures.cancelled, figures.delivered, figures.pending) == (1, 0, 0)
    assert list(deliveries.faults()) == []
    deliveries.arrive("0-0", 1_000, 1_000, 1_005.0)
    assert list(deliveries.faults()) == ["1 records arrived after an acknowledged cancel, such as 0-0"]


def test_a_record_that_is_cancelled_too_late_may_arrive() -> None:
    deliveries = Deliveries()
    for id in ("0-0", "0-1"):
        deliveries.acknowledge(id, 1_000)
        deliveries.cancel(id, 1_000.0)
    deliveries.arrive("0-0", 1_000, 1_000, 1_005.0)
    assert deliveries.is_complete
    figures = deliveries.figures()
    assert (figures.cancelled, figures.delivered, figures.pending) == (1, 1, 0)
    assert list(deliveries.faults()) == []


def test_a_record_that_was_not_sent_is_a_fault() -> None:
    deliveries = Deliveries()
    deliveries.arrive("0-0", 900, 950, 950.0)
    assert list(deliveries.faults()) == ["1 records arrived and were not sent, such as 0-0"]


def test_a_record_that_arrives_twice_is_counted_and_is_no_fault() -> None:
    deliveries = Deliveries()
    deliveries.acknowledge("0-0", 1_000)
    for now in (1_010.0, 5_000.0):
        deliveries.arrive("0-0", 1_000, 1_000, now)
    figures = deliveries.figures()
    assert (figures.duplicates, figures.delivered, figures.worst) == (1, 1, 10.0)
    assert list(deliveries.faults()) == []
