"""The macros of the dialect, and queries of Arrow tables."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from purgatory.pipeline.sql import select

# The amounts of a group, with the number of times that each occurs.
QUANTILES = """
SELECT "group", {quantiles} FROM (
    SELECT *, sum(times) OVER (PARTITION BY "group" ORDER BY amount) AS upto,
        sum(times) OVER (PARTITION BY "group") AS number
    FROM rows
) GROUP BY "group"
"""
SHARES = (0, 0.3, 0.5, 0.99, 1)


def bins(amounts: list[int | None]) -> dict[int | None, int | None]:
    rows = pa.table({"amount": pa.array(amounts, pa.int64())})
    return {
        row["amount"]: row["bin"]
        for row in select("SELECT *, bin(amount) AS bin FROM rows", rows).to_pylist()
    }


def test_a_bin_is_exact_below_2048_and_else_less_than_a_thousandth_too_low() -> None:
    amounts = [least + number for least in (0, 2040, 10**6, 2**52 - 5) for number in range(20)]

    found: dict[Any, Any] = bins([*amounts, None])

    assert found.pop(None) is None
    assert all(bin == amount for amount, bin in found.items() if amount < 2048)
    assert all(amount * 0.999 < bin <= amount for amount, bin in found.items() if amount)
    assert [found[amount] for amount in sorted(found)] == sorted(found.values())


def test_a_bin_keeps_eleven_bits() -> None:
    amounts = [*range(10), *(least + number for least in (2040, 10**6, 2**40) for number in range(-9, 9))]
    excess = {amount: max(amount.bit_length() - 11, 0) for amount in amounts}
    assert bins([*amounts]) == {amount: amount >> excess[amount] << excess[amount] for amount in amounts}


def test_there_are_1024_bins_between_a_power_of_two_and_the_next() -> None:
    assert len(set(bins([*range(2**15, 2**16)]).values())) == 1024


def test_a_quantile_is_that_of_all_amounts_as_often_as_they_occur() -> None:
    draw = random.Random(4)
    counts = {(draw.choice("abc"), draw.randrange(50)): draw.randrange(1, 4) for _ in range(200)}
    rows = [{"group": group, "amount": amount, "times": times} for (group, amount), times in counts.items()]
    found = quantiles(rows)
    assert set(found) == {"a", "b", "c"}
    for name, of_group in found.items():
        own = [amount for (group, amount), times in counts.items() if group == name for _ in range(times)]
        assert of_group == pytest.approx([np.quantile(own, share) for share in SHARES])


def test_a_group_without_amounts_has_no_quantile() -> None:
    found = quantiles(
        [{"group": "a", "amount": None, "times": None}, {"group": "b", "amount": 6, "times": 1}]
    )
    assert found == {"a": [None] * len(SHARES), "b": [6] * len(SHARES)}
    assert quantiles([]) == {}


def quantiles(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    schema = pa.schema([("group", pa.string()), ("amount", pa.int64()), ("times", pa.int64())])
    names = ", ".join(f"quantile(amount, upto, number, {share}) AS q{at}" for at, share in enumerate(SHARES))
    found = select(QUANTILES.format(quantiles=names), pa.Table.from_pylist(rows, schema)).to_pylist()
    return {row.pop("group"): list(row.values()) for row in found}


def test_a_sum_beyond_64_bits_is_the_highest_number() -> None:
    rows = pa.table({"amount": [2**62, 2**62, 1]})
    assert select("SELECT total(amount) AS sum FROM rows", rows).to_pylist() == [{"sum": 2**63 - 1}]
    assert select("SELECT total(amount) AS sum FROM rows", rows.slice(1)).to_pylist() == [{"sum": 2**62 + 1}]
    assert select("SELECT total(amount) AS sum FROM rows", rows.slice(3)).to_pylist() == [{"sum": None}]


def test_instants_are_exact_to_the_microsecond_until_the_year_9998() -> None:
    instants = [datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, UTC)]
    rows = pa.table({"moment": pa.array(instants, pa.timestamp("us", "UTC"))})
    found = select("SELECT instant(epoch_us(moment)) AS moment, epoch_us(moment) AS us FROM rows", rows)
    assert found["moment"].to_pylist() == instants
    assert found["us"].to_pylist() == [0, (instants[1] - instants[0]) // timedelta(microseconds=1)]


def test_texts_are_any_unicode() -> None:
    texts = ["", "\0", "a\0b", "'; DROP TABLE rows; --", "\U0001f600", "e\u0301", None]
    rows = pa.table({"text": pa.array(texts, pa.string())})
    found = select("SELECT text, count(*) AS number FROM rows GROUP BY ALL", rows)
    assert set(found["text"].to_pylist()) == set(texts)
    assert found["number"].to_pylist() == [1] * len(texts)


def test_ctrl_c_ends_a_query_as_any_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: duckdb.DuckDBPyConnection, query: str) -> None:
        raise duckdb.InvalidInputException("reading the schema failed: KeyboardInterrupt:")

    monkeypatch.setattr(duckdb.DuckDBPyConnection, "sql", interrupted)
    with pytest.raises(KeyboardInterrupt):
        select("SELECT 1", pa.table({"number": [1]}))


def test_a_query_knows_no_table_of_the_query_before() -> None:
    rows = pa.table({"number": [1]})
    assert select("SELECT * FROM rows, others", rows, others=pa.table({"other": [2]})).num_rows == 1
    with pytest.raises(duckdb.CatalogException, match="others"):
        select("SELECT * FROM others", rows)
