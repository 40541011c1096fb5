"""The batches of segments that a table of a dataset is made of. Each batch is committed exactly once.

One commit adds the rows of a batch to their table. The number of the batch is the transaction of that commit.
So if two processes commit the same batch, one of them is refused.

A batch has rows in two other tables, too: one row for each segment that was read, and the rows that were
refused. The commit names the files with these rows, and two more commits add the files right afterwards. If
the process is killed before these two commits, the next process that works on the table makes them first. So
a segment whose rows are in the dataset is never read again, and a segment whose rows are not there is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow.compute as pc
from deltalake import Transaction
from deltalake.exceptions import CommitFailedError

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile, StoredTable
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.recorded import Recorded
from purgatory.pipeline.schemas import Table

# The application whose transactions are the batches of a table.
_BATCH: Final = "compact"
# The key under which a commit names the files for the two other tables.
_FOLLOWING: Final = "purgatory.following"


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """The files of a batch, which are written and not yet committed."""

    rows: Sequence[DataFile]
    quarantine: Sequence[DataFile]
    segments: Sequence[DataFile]


class Batches:
    """The committed batches of one table, and the way to commit the next."""

    def __init__(self, dataset: Dataset, table: Table) -> None:
        """Make the tables if there are none. Make the commits that a killed process has left out."""
        self._dataset = dataset
        self._table = table
        # The segments are committed last. So the table of segments tells whether a batch is complete.
        self._following = {"quarantine": dataset.quarantine, "segments": dataset.segments}
        for stored in self._following.values():
            stored.create()
        self._rows = dataset.table(table)
        self._log = self._rows.create()
        # The folders of the files that this object has committed.
        self._committed: set[str] = set()
        # Whether the last commit raised an error, and may be made nevertheless.
        self._unsure = False
        # The number of the last committed batch; 0 if there is none.
        self.last = self._log.transaction_version(_BATCH) or 0
        if dataset.segments.transaction(table.name) < self.last:
            self._commit_following(self._recorded())

    def __repr__(self) -> str:
        return f"<Batches of {self._rows.path}: {self.last}>"

    def recorded(self) -> Recorded:
        """The files that were read of the table."""
        rows = self._dataset.segments.rows()
        own = rows.filter(pc.equal(rows["table"], self._table.name))
        return Recorded(own.sort_by("batch").to_pylist())

    def commit(self, files: BatchFiles) -> None:
        """Commit the next batch.

        Raises PipelineError, with nothing committed, if another process has committed a batch since this
        object was made.
        """
        following = {name: [asdict(file) for file in getattr(files, name)] for name in self._following}
        batch = self.last + 1
        overtaken = PipelineError(
            f"{self._rows.path}: another process added segments meanwhile, so batch {batch} was not added; "
            "run compact again"
        )
        # Delta Lake refuses a batch only if it was committed after this log was read.
        if (self._log.transaction_version(_BATCH) or 0) != self.last:
            raise overtaken
        self._unsure = True
        try:
            self._rows.append(self._log, files.rows, Transaction(_BATCH, batch), {_FOLLOWING: following})
        except CommitFailedError as error:
            self._unsure = False
            # A store may make a commit, and its answer may be lost. Then the repeated request is refused.
            self._log = self._rows.log()
            if following not in self._all_following():
                raise overtaken from error
        self._unsure = False
        self._committed |= {file.folder for file in (*files.rows, *files.quarantine, *files.segments)}
        self.last = batch
        self._commit_following(following)

    def clean(self) -> None:
        """Delete the files that were written with the token of the dataset and are in no commit.

        Deletes nothing if a commit raised an error and may be made nevertheless.
        """
        if self._unsure and self._rows.transaction(_BATCH) > self.last:
            return
        for stored in (self._rows, *self._following.values()):
            stored.remove(stored.folders() - self._committed)

    def _commit_following(self, following: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        for name, stored in self._following.items():
            files = [DataFile(**file) for file in following[name]]
            if files:
                self._commit_once(stored, files)

    def _commit_once(self, stored: StoredTable, files: Sequence[DataFile]) -> None:
        log = stored.log()
        if (log.transaction_version(self._table.name) or 0) >= self.last:
            return
        try:
            stored.append(log, files, Transaction(self._table.name, self.last))
        except CommitFailedError:
            # Another process may have made the same commit.
            if stored.transaction(self._table.name) < self.last:
                raise

    def _recorded(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The files that the last batch names for the two other tables."""
        recorded = self._all_following()
        if not recorded:
            raise PipelineError(
                f"{self._rows.path}: a process was killed while it added batch {self.last}, and the log no "
                "longer names the files of that batch; compact the journal again, into a new directory"
            )
        return recorded[0]

    def _all_following(self) -> list[Mapping[str, Sequence[Mapping[str, Any]]]]:
        """The files that the batches name for the two other tables. The last batch comes first."""
        return [commit[_FOLLOWING] for commit in self._log.history() if _FOLLOWING in commit]
