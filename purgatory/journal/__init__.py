"""Records every finished operation and every check of a key in Parquet files. Needs the extra ``journal``."""

from purgatory.journal.writer import JournalWriter

__all__ = ["JournalWriter"]
