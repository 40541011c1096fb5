"""Receipts as text, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.delayed import Receipt
from purgatory.delayed.message import Message

TOKENS = st.integers(0, (1 << 64) - 1)
# As far as a receipt keeps each millisecond: 35,000 years.
DUES = st.integers(-(1 << 50), 1 << 50)


@given(st.none() | st.text(min_size=1), DUES, TOKENS)
def test_a_receipt_that_was_stored_as_text_is_the_same(name: str | None, due: int, token: int) -> None:
    receipt = Message(token, due, name, b"payload", 0).receipt
    assert Receipt.parse(str(receipt)) == receipt
    assert round(receipt.due * 1000) == due
    assert receipt.id == (f"{token:016x}" if name is None else name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.2",
        "1.000000000000000g.id",
        "x.0000000000000001.id",
        "1.1.id",
        " 1.0000000000000001.id",
        "1_0.0000000000000001.id",
        "1.-000000000000001.id",
        "1.10000000000000000.id",
        "1125899906842625.0000000000000001.id",
        "-1125899906842625.0000000000000001.id",
        "1" * 400 + ".0000000000000001.id",
        "1" * 5_000 + ".0000000000000001.id",
        "1.0000000000000001.",
    ],
)
def test_text_that_is_no_receipt_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no receipt"):
        Receipt.parse(text)


@pytest.mark.parametrize(("id", "due", "token"), [("id", 0.0, -1), ("id", 0.0, 1 << 64), ("id", 1e300, 1)])
def test_a_receipt_that_no_store_can_have_given_is_refused(id: str, due: float, token: int) -> None:
    with pytest.raises(ValueError, match="no store gives"):
        Receipt(id, due, token)


@pytest.mark.parametrize("due", [float("nan"), float("inf"), -float("inf")])
def test_a_receipt_is_due_at_a_finite_time(due: float) -> None:
    with pytest.raises(ValueError, match="no store gives"):
        Receipt("id", due, 1)
