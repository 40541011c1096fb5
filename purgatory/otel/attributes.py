"""The names of attributes, and of the scope of all that is recorded."""

from typing import Final

SCOPE: Final = "purgatory"

NAME: Final = "purgatory.name"
OUTCOME: Final = "purgatory.operation.outcome"
TABLE: Final = "purgatory.journal.table"
OPERATION_TYPE: Final = "purgatory.operation.type"
TRIES: Final = "purgatory.operation.tries"
ERROR_TYPE: Final = "error.type"
