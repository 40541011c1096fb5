"""The headers of records, right and wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.delayed.request import Header, Request
from examples.delayed.settings import Topics

TOPICS = Topics()
NOW = 1_700_000_000_000
TARGET: Header = ("target", b"orders")
DELAY: Header = ("delay-ms", b"1")


@dataclass(frozen=True)
class StoredRecord:
    headers: tuple[Header, ...]
    partition: int = 1
    offset: int = 42
    timestamp: int = NOW
    key: bytes | None = b"key"
    value: bytes | None = b"value"


def parse(*headers: Header, timestamp: int = NOW) -> Request:
    return Request.parse(StoredRecord(headers, timestamp=timestamp), TOPICS)


@pytest.mark.parametrize(
    ("name", "value", "due"),
    [
        ("deliver-at", b"1700000005000", NOW + 5_000),
        # From the timestamp of the record.
        ("delay-ms", b"250", NOW + 250),
        # In the past.
        ("deliver-at", b"0", 0),
    ],
)
def test_the_due_time_is_what_the_headers_say(name: str, value: bytes, due: int) -> None:
    assert parse((name, value), TARGET) == Request("1-42", due, "orders", b"key", b"value", ())


def test_consumers_get_the_other_headers_and_the_id_and_due_time() -> None:
    request = parse(("trace", b"a"), ("deliver-at", b"1700000005000"), ("trace", None), TARGET, ("z", b""))
    assert request.delivered().headers == [
        ("trace", b"a"),
        ("trace", None),
        ("z", b""),
        ("delayed-id", b"1-42"),
        ("delayed-due", b"1700000005000"),
    ]


def test_a_record_that_is_written_back_keeps_its_id_and_its_due_time() -> None:
    request = parse(("x", b"y"), ("delay-ms", b"5000"), TARGET)
    again = StoredRecord(
        tuple(request.carried("delayed").headers), partition=2, offset=7, timestamp=NOW + 1_000
    )
    assert Request.parse(again, TOPICS) == request


def test_headers_of_the_service_that_producers_send_do_not_count() -> None:
    forged: tuple[Header, ...] = (
        ("delayed-due", b"1"),
        ("delayed-reason", b"?"),
        ("delayed-level-due", b"soon"),
        ("delayed-id", None),
    )
    request = parse(*forged, DELAY, TARGET)
    assert request == Request("1-42", NOW + 1, "orders", b"key", b"value", ())


def test_a_record_that_was_delivered_can_be_delayed_again_and_gets_a_new_id() -> None:
    delivered = parse(DELAY, TARGET).delivered().headers
    request = parse(*delivered, ("delay-ms", b"2"), ("target", b"again"))
    assert request.delivered().headers == [
        ("delayed-id", b"1-42"),
        ("delayed-due", b"%d" % (NOW + 2)),
    ]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ((), "deliver-at and delay-ms are missing"),
        ((TARGET,), "deliver-at and delay-ms are missing"),
        ((DELAY, ("deliver-at", b"1"), TARGET), "both there"),
        ((DELAY, DELAY, TARGET), "delay-ms is there 2 times"),
        ((("delay-ms", None), TARGET), "delay-ms has no value"),
        ((("delay-ms", b""), TARGET), "milliseconds"),
        ((("delay-ms", b"-1"), TARGET), "milliseconds"),
        ((("delay-ms", b"1.5"), TARGET), "milliseconds"),
        ((("delay-ms", b"1e3"), TARGET), "milliseconds"),
        ((("delay-ms", b" 1"), TARGET), "milliseconds"),
        ((("delay-ms", b"1_000"), TARGET), "milliseconds"),
        ((("delay-ms", b"1\n"), TARGET), "milliseconds"),
        ((("delay-ms", "\uff11".encode()), TARGET), "milliseconds"),
        ((("delay-ms", b"NaN"), TARGET), "milliseconds"),
        ((("delay-ms", b"9" * 17), TARGET), "milliseconds"),
        ((("delay-ms", b"9" * 16), TARGET), "too late"),
        ((("deliver-at", b"soon"), TARGET), "milliseconds"),
        ((("deliver-at", b"1125899906842624"), TARGET), "too late"),
        # In microseconds.
        ((("deliver-at", b"1800000000000000"), TARGET), "too late"),
        ((DELAY,), "target is missing"),
        ((DELAY, TARGET, TARGET), "target is there 2 times"),
        ((DELAY, ("target", None)), "target has no value"),
        ((DELAY, ("target", b"")), "name of a topic"),
        ((DELAY, ("target", b"\xff")), "name of a topic"),
        ((DELAY, ("target", b"a/b")), "name of a topic"),
        ((DELAY, ("target", b"..")), "name of a topic"),
        ((DELAY, ("target", b"a" * 250)), "name of a topic"),
        ((DELAY, ("target", b"orders\n")), "name of a topic"),
        ((DELAY, ("target", b"delayed")), "internal topic"),
        ((DELAY, ("target", b"delayed-done")), "internal topic"),
        ((DELAY, ("target", b"__consumer_offsets")), "internal topic"),
        ((DELAY, TARGET, ("delayed-origin", b"nonsense")), "delayed-origin is set by the service"),
    ],
)
def test_wrong_headers_reject_the_record_with_the_reason(headers: tuple[Header, ...], reason: str) -> None:
    request = parse(*headers, ("x", b"y"))
    assert request.target == "delayed-rejected"
    assert reason in request.reason
    assert (request.due, request.key, request.value) == (0, b"key", b"value")
    kept = [header for header in headers if header[0] != "delayed-origin"]
    assert request.delivered().headers == [
        *kept,
        ("x", b"y"),
        ("delayed-id", b"1-42"),
        ("delayed-reason", request.reason.encode()),
    ]


def test_delay_ms_of_a_record_without_a_timestamp_is_rejected() -> None:
    request = parse(DELAY, TARGET, timestamp=-1)
    assert "timestamp" in request.reason
    assert parse(("deliver-at", b"1"), TARGET, timestamp=-1).reason == ""


def test_what_a_target_refuses_is_rejected_with_the_headers_that_it_had() -> None:
    request = parse(DELAY, TARGET, ("x", b"y")).refused("no such topic", TOPICS)
    assert request.target == "delayed-rejected"
    assert request.delivered().headers == [
        ("x", b"y"),
        TARGET,
        ("deliver-at", b"%d" % (NOW + 1)),
        ("delayed-id", b"1-42"),
        ("delayed-reason", b"no such topic"),
    ]


maybe_bytes = st.none() | st.binary()


@given(
    st.builds(
        Request,
        id=st.text(),
        due=st.integers(0, 1 << 53),
        target=st.text(),
        key=maybe_bytes,
        value=maybe_bytes,
        headers=st.lists(st.tuples(st.text(), maybe_bytes)).map(tuple),
        reason=st.text(),
    )
)
def test_a_request_is_the_same_after_it_was_stored(request: Request) -> None:
    assert Request.decode(request.encode()) == request
