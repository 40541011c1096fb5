"""The tables of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from purgatory.pipeline.delta import DataFile, StoredTable
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import QUARANTINE, SEGMENTS, TABLES, Table
from purgatory.pipeline.tables import DerivedTable

# The application whose transactions are the runs of a command.
_RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class Dataset:
    """The folder that `compact` fills and all other commands read. Its tables are Delta tables."""

    root: str
    # The names of the folders that are made in the tables begin with this text.
    token: str = ""

    def table(self, table: Table) -> StoredTable:
        """A table of the journal."""
        return StoredTable(self._at(table.name), table.columns, table.instant, self.token)

    @property
    def segments(self) -> StoredTable:
        """The segments that were read, with the counts of their rows."""
        return StoredTable(self._at("segments"), SEGMENTS, token=self.token)

    @property
    def quarantine(self) -> StoredTable:
        """The rows that were refused."""
        return StoredTable(self._at("quarantine"), QUARANTINE, token=self.token)

    def derived(self, table: DerivedTable) -> StoredTable:
        """A table that a command makes from other tables."""
        return StoredTable(self._at(f"{table.folder}/{table.name}"), table.columns, token=self.token)

    def check_compacted(self) -> None:
        """Raise PipelineError if nothing has been compacted."""
        if not self.is_compacted:
            raise PipelineError(
                f"{self.root}: nothing is compacted here; run: purgatory-pipeline compact JOURNAL {self.root}"
            )

    @property
    def is_compacted(self) -> bool:
        """Whether `compact` has made tables here."""
        return any(self.table(table).exists for table in TABLES)

    def files(self) -> Mapping[str, Sequence[str]]:
        """The paths of the files of each table of the journal."""
        return {table.name: self.table(table).paths() for table in TABLES}

    def new_run(self, tables: Sequence[DerivedTable]) -> int:
        """The number of the next run of the command that makes these tables."""
        return 1 + max(self.derived(table).transaction(_RUN) for table in tables)

    def replace(self, table: DerivedTable, rows: pa.Table, run: int) -> None:
        """Replace a table by rows, in the order of the table.

        Readers see the old table until the new table is complete. Raises PipelineError if a later run of the
        command has replaced the table already.
        """
        self.replace_files(table, self.derived(table).write_in_order(rows, table.order_by), run)

    def clear(self, tables: Sequence[DerivedTable]) -> None:
        """Make the tables of a command that has nothing to say. They have no rows."""
        run = self.new_run(tables)
        for table in tables:
            self.replace_files(table, [], run)

    def replace_files(self, table: DerivedTable, files: Sequence[DataFile], run: int) -> None:
        """Replace a table by files that were written for it, and that are in no commit yet."""
        stored = self.derived(table)
        folders = {file.folder for file in files}
        overtaken = PipelineError(
            f"{stored.path}: another process has made this table meanwhile; run one process at a time"
        )
        if stored.transaction(_RUN) >= run:
            stored.remove(folders)
            raise overtaken
        try:
            stored.replace(files, Transaction(_RUN, run))
        except CommitFailedError as error:
            # A store may make a commit, and its answer may be lost. Then the repeated request is refused.
            if set(stored.paths()) != {stored.path_of(file.path) for file in files}:
                stored.remove(folders)
                raise overtaken from error
        except Exception:
            # The commit may be made, if only what follows it has failed.
            if stored.transaction(_RUN) < run:
                stored.remove(folders)
            raise

    def logs_of_run(self, tables: Sequence[DerivedTable]) -> dict[DerivedTable, DeltaTable]:
        """The logs of the tables of a command. Empty if one run has not made all tables."""
        logs = {table: self.derived(table).log() for table in tables if self.derived(table).exists}
        runs = {log.transaction_version(_RUN) for log in logs.values()}
        return {} if len(logs) < len(tables) or len(runs) > 1 else logs

    def _at(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"
