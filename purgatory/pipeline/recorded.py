"""What a dataset has recorded of the files that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from purgatory.pipeline import locations
from purgatory.pipeline.listing import Segment

# A row of the table of segments; see schemas.SEGMENTS.
Row = Mapping[str, Any]


class Recorded:
    """The files that were read of one table of the journal.

    A file is what its bytes are: its digest tells whether it was read. Its name says nothing, because other
    programs than a JournalWriter give two files one name, or write a file again. A path with the size and the
    time at which it was read tells the same without reading the file again.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """The rows are in the order in which the files were read."""
        # The last row about each path.
        self._latest: dict[str, Row] = {}
        # The size and the rows of each file that was read, by its digest.
        self._read: dict[str, tuple[int, int]] = {}
        # Files that a version without digests has read: their paths by name and size.
        self._undigested: dict[tuple[str, int], list[tuple[str, datetime]]] = {}
        for row in rows:
            self.add(row)

    def __repr__(self) -> str:
        return f"<Recorded: {len(self._latest)} paths, {len(self._read)} digests>"

    def add(self, row: Row) -> None:
        """Record one more file, as the latest one."""
        self._latest[row["source"]] = row
        if row["digest"] is not None:
            self._read[row["digest"]] = row["size"], row["rows"]
        elif row["reason"] is None:
            places = self._undigested.setdefault((row["name"], row["size"]), [])
            places.append((row["source"], row["modified"]))

    def latest(self, segment: Segment) -> Row | None:
        """The last row about the path of the segment."""
        return self._latest.get(segment.source)

    def was_read(self, segment: Segment) -> bool:
        """Whether the segment need not be read again, as far as its path, size and time tell.

        Of a file that a version without digests has read, the name and the size tell.
        """
        if (segment.name, segment.size) in self._undigested:
            return True
        row = self._unchanged(segment)
        return row is not None and row["digest"] is not None

    def refusal(self, segment: Segment) -> str | None:
        """Why the segment could not be read, if it has not changed since."""
        row = self._unchanged(segment)
        return None if row is None else row["reason"]

    def rows_by_digest(self, segments: Iterable[Segment]) -> Mapping[str, int]:
        """The number of rows of files that the segments may be copies of, by digest."""
        sizes = {segment.size for segment in segments}
        return {digest: rows for digest, (size, rows) in self._read.items() if size in sizes}

    def has(self, segment: Segment) -> bool:
        """Whether the file, as it is now, is one that was read, byte for byte.

        A version without digests has recorded less. Then its path, size and time must be those of the file
        that was read. A file that is gone or cannot be read is none.
        """
        for source, modified in self._undigested.get((segment.name, segment.size), ()):
            if modified == segment.modified and locations.real(source) == segment.source:
                return True
        if not self.rows_by_digest([segment]):
            return False
        try:
            return segment.digest() in self._read
        except OSError:
            return False

    def _unchanged(self, segment: Segment) -> Row | None:
        """The last row about the path, if the file had this size and time."""
        row = self.latest(segment)
        same = row is not None and (row["size"], row["modified"]) == (segment.size, segment.modified)
        return row if same else None
