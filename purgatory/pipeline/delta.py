"""Delta tables. Arrow writes and reads the files. The package deltalake keeps the log, which names the files.

A file belongs to a table when a commit in the log names it. So no reader sees a file that is half written, or
a file that a killed process has left. This is true of the readers of other packages, too.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, create_table_with_add_actions

from purgatory.pipeline import locations
from purgatory.pipeline.addresses import absolute, delta_uri
from purgatory.pipeline.columns import fitted
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.sql import select

# The column by which tables are partitioned.
_DATE: Final = "date"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file in the directory of a table."""

    # Relative to the directory of the table.
    path: str
    # In bytes.
    size: int
    # In milliseconds of Unix time.
    modified: int
    rows: int
    # The date of all its rows; None if the table is not partitioned.
    date: str | None

    @property
    def folder(self) -> str:
        """The first part of the path."""
        return self.path.partition("/")[0]

    def added(self) -> AddAction:
        """The part of a commit that adds the file to the table."""
        partition = {} if self.date is None else {_DATE: self.date}
        return AddAction(
            self.path, self.size, partition, self.modified, True, json.dumps({"numRecords": self.rows})
        )


# The fields of DataFile as columns.
_FILES: Final = pa.schema(
    [
        ("path", pa.string()),
        *((name, pa.int64()) for name in ("size", "modified", "rows")),
        ("date", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A Delta table at an address, with declared columns."""

    path: str
    columns: pa.Schema
    # The table is partitioned by the day of this column, in UTC. None if it has no partitions.
    dated_by: str | None = None
    # The names of new folders begin with this text. It tells them from the folders of other processes.
    token: str = ""

    @property
    def exists(self) -> bool:
        return DeltaTable.is_deltatable(self._uri, self._options)

    def create(self) -> DeltaTable:
        """Open the log to write to the table. Makes an empty table if there is none, and adds new columns."""
        DeltaTable.create(
            self._uri,
            self._columns,
            mode="ignore",
            partition_by=self._partitions,
            storage_options=self._options,
        )
        log = self.log()
        stored = _names(log.schema())
        added = [field for field in self._columns.fields if field.name not in stored]
        if added:
            try:
                log.alter.add_columns(added)
            except CommitFailedError:
                # Another process has changed the table. It may have added the columns.
                return self.create()
        return log

    def log(self) -> DeltaTable:
        """Open the log at its newest version.

        If an older version of purgatory has written the table, it may lack columns, and if a newer one has,
        it may have more. Such columns may be null. Raises PipelineError if the columns differ otherwise.
        """
        log = DeltaTable(self._uri, storage_options=self._options)
        declared = {field.name: field for field in self._columns.fields}
        stored = {field.name: field for field in log.schema().fields}
        common = declared.keys() & stored.keys()
        if any(declared[name] != stored[name] for name in common) or not all(
            field.nullable for name, field in (declared | stored).items() if name not in common
        ):
            raise PipelineError(
                f"{self.path}: another version of purgatory wrote this table, with the columns "
                f"{', '.join(stored)}; run again the command that makes it, or compact the journal into a "
                "new directory"
            )
        return log

    def transaction(self, application: str) -> int:
        """The highest number of the application's transactions; 0 if there is none, or no table."""
        if not self.exists:
            return 0
        log = DeltaTable(self._uri, storage_options=self._options)
        return log.transaction_version(application) or 0

    def write_in_order(self, rows: pa.Table, order_by: Sequence[str]) -> list[DataFile]:
        """Write rows to one file, sorted by these columns, with nulls first. The file is in no commit yet.

        Raises TypeError if the rows lack a column.
        """
        if missing := set(self.columns.names) - set(rows.column_names):
            raise TypeError(f"{self.path}: the rows have no column {', '.join(sorted(missing))}")
        keys = ", ".join(f'"{name}" NULLS FIRST' for name in order_by)
        return self.write_table(select(f"FROM rows ORDER BY {keys}", rows))

    def write_rows(self, rows: Sequence[Mapping[str, Any]]) -> list[DataFile]:
        """Write a few rows to a file that is in no commit yet. Columns that a row lacks are null."""
        return self.write_table(pa.Table.from_pylist(list(rows), self.columns))

    def write_table(self, rows: pa.Table) -> list[DataFile]:
        """Write rows, in their order, to one file for each date. The files are in no commit yet.

        Raises ValueError if a column has nulls and is declared without nulls.
        """
        with self._new_folder() as folder:
            if self.dated_by is None:
                return [self._write_file(rows, folder, None)] if rows.num_rows else []
            days = rows[self.dated_by].cast(pa.date32())
            distinct = sorted(pc.unique(days).to_pylist())
            return [
                self._write_file(
                    rows if len(distinct) == 1 else rows.filter(pc.equal(days, day)),
                    f"{folder}/{_DATE}={day}",
                    str(day),
                )
                for day in distinct
            ]

    def write_in_worker(self, rows: pa.Table) -> pa.Table:
        """Do what `write_table` does. Returns a table of the files, with the fields of DataFile."""
        return pa.Table.from_pylist([asdict(file) for file in self.write_table(rows)], _FILES)

    def remove(self, folders: Collection[str]) -> None:
        """Delete folders of files that are in no commit."""
        for folder in folders:
            locations.delete_folder(self.path_of(folder))

    def folders(self) -> set[str]:
        """The names of the folders that were made with the token of this table; none without a token."""
        names = locations.names_in(self.path) if self.token else []
        return {name for name in names if name.startswith(self.token)}

    def append(
        self,
        log: DeltaTable,
        files: Sequence[DataFile],
        transaction: Transaction,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Commit the files, and read the log again.

        Raises deltalake's CommitFailedError if the application has committed a transaction after the log was
        read. The caller has to check that the log has no such transaction already.
        """
        log.create_write_transaction(
            [file.added() for file in files],
            "append",
            log.schema(),
            self._partitions,
            commit_properties=CommitProperties(custom_metadata=metadata, app_transactions=[transaction]),
        )
        log.update_incremental()

    def replace(self, files: Sequence[DataFile], transaction: Transaction) -> None:
        """Replace the whole table by these files. Readers see the old table or the new table."""
        create_table_with_add_actions(
            self._uri,
            self._columns,
            [file.added() for file in files],
            mode="overwrite",
            partition_by=self._partitions,
            storage_options=self._options,
            commit_properties=CommitProperties(app_transactions=[transaction]),
        )

    def paths(self, dates: Collection[date] | None = None, log: DeltaTable | None = None) -> list[str]:
        """The paths of the committed files of these dates, or of all dates. Empty if there is no table."""
        if log is None:
            if not self.exists:
                return []
            log = self.log()
        added = pa.table(log.get_add_actions(flatten=True))
        paths = [self.path_of(path) for path in added.column("path").to_pylist()]
        if dates is None:
            return paths
        days = added.column(f"partition.{_DATE}").to_pylist()
        return [path for path, day in zip(paths, days, strict=True) if day in dates]

    def path_of(self, file: str) -> str:
        """The absolute path of a file. `file` is its path in the directory of the table."""
        return f"{absolute(self.path)}/{file}"

    def rows(self, log: DeltaTable | None = None) -> pa.Table:
        """All committed rows of a small table."""
        # `to_pyarrow_table` would import pandas, which takes a second.
        return pa.concat_tables([self.columns.empty_table(), *map(self._rows_of, self.paths(log=log))])

    @property
    def _uri(self) -> str:
        return delta_uri(self.path)

    @property
    def _options(self) -> dict[str, str]:
        return dict(locations.delta_options(self.path))

    @property
    def _columns(self) -> Schema:
        return Schema.from_arrow(self.columns)

    @property
    def _partitions(self) -> list[str]:
        return [] if self.dated_by is None else [_DATE]

    @contextmanager
    def _new_folder(self) -> Iterator[str]:
        """The address of a folder for new files.

        It is deleted if the block fails: a full disk would else become fuller.
        """
        folder = self.path_of(f"{self.token}{uuid4().hex}")
        try:
            yield folder
        except (Exception, KeyboardInterrupt):
            locations.delete_folder(folder)
            raise

    def _rows_of(self, path: str) -> pa.Table:
        rows = locations.parquet(path).read()
        if self.dated_by is not None:
            # The files have no date: it is in the names of folders, and in the log.
            rows = rows.append_column(_DATE, rows[self.dated_by].cast(pa.date32()))
        return fitted(rows, self.columns)

    def _write_file(self, rows: pa.Table, folder: str, date: str | None) -> DataFile:
        stored = pa.schema([field for field in self.columns if field.name not in self._partitions])
        path = f"{folder}/rows.parquet"
        with locations.created(path) as file:
            pq.write_table(fitted(rows, stored), file, compression="zstd")
        info = locations.info(path)
        name = path.removeprefix(self.path_of(""))
        return DataFile(name, info.size, info.mtime_ns // 1_000_000, rows.num_rows, date)


def _names(columns: Schema) -> set[str]:
    return {field.name for field in columns.fields}
