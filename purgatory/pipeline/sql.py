"""The dialect of the measures: DuckDB's SQL, on Arrow tables.

Spark splits the work, carries rows between workers, and repeats the work of a worker that was lost. SQL says
what is computed of the rows.
"""

from __future__ import annotations

from functools import cache
from tempfile import gettempdir
from typing import Final
from uuid import uuid4

import duckdb
import pyarrow as pa

MINUTE_US: Final = 60_000_000
DAY_US: Final = 86_400_000_000

# What all queries know. Instants are in microseconds since 1970.
_PRELUDE: Final = """
SET TimeZone = 'UTC';

-- A sum beyond 64 bits is the highest number of 64 bits.
CREATE MACRO total(amount) AS
    if(sum(amount) > 9_223_372_036_854_775_807, 9_223_372_036_854_775_807, sum(amount))::BIGINT;

CREATE MACRO ended_us(started, waited_us) AS epoch_us(started) + waited_us;
CREATE MACRO start_us(at_us, length_us) AS at_us - at_us % length_us;
CREATE MACRO instant(at_us) AS make_timestamp(at_us::BIGINT) AT TIME ZONE 'UTC';

-- A whole number >= 0, rounded down to eleven bits: at most 0.1 % too low, and exact below 2048. These are
-- the bins of an HDR histogram, 1024 for each doubling. Rows are counted by bin first, and quantiles are
-- taken of the counts. So quantiles need little memory, and do not depend on how the rows are split.
CREATE MACRO excess(amount) AS greatest(floor(log2(greatest(amount, 1)))::INTEGER - 10, 0);
CREATE MACRO bin(amount) AS amount >> excess(amount) << excess(amount);

-- A quantile of a group, in which some amounts occur several times: `upto` is how many amounts are as low as
-- the amount of the row, or lower, and `number` is how many there are. Interpolates between neighbouring
-- amounts. Null if there are no amounts.
CREATE MACRO place(number, share) AS share::DOUBLE * (number - 1);
CREATE MACRO lowest_above(amount, upto, place) AS min(amount) FILTER (upto > place);
CREATE MACRO quantile(amount, upto, number, share) AS
    lowest_above(amount, upto, floor(place(number, share)))
    + any_value(place(number, share) - floor(place(number, share))) * (
        lowest_above(amount, upto, ceil(place(number, share)))
        - lowest_above(amount, upto, floor(place(number, share)))
    );
"""


def select(query: str, rows: pa.Table, /, **others: pa.Table) -> pa.Table:
    """The result of a query of the table ``rows``, and of other tables by their names."""
    connection = _connection()
    tables = {"rows": rows, **others}
    try:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.sql(query).to_arrow_table()
    except duckdb.Error as error:
        # Ctrl-C may become an error of DuckDB.
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for name in tables:
            connection.unregister(name)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """The database of this process. It is in memory, and has no tables of its own."""
    # One thread is enough, because Spark gives each core a task. Nothing is fetched from a network.
    connection = duckdb.connect(
        config={
            "threads": 1,
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
            # The directory is made if a query does not fit into memory.
            "temp_directory": f"{gettempdir()}/purgatory-{uuid4().hex}",
        }
    )
    connection.execute(_PRELUDE)
    return connection
