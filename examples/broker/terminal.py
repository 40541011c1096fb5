"""Standard output, for tables and lines."""

import os
import sys
from typing import Final

import rich.console

# Characters in a line where nobody sees its end.
_UNLIMITED: Final = 10_000


class Terminal(rich.console.Console):
    """Writes whole lines into a pipe or a file, and goes on when nobody reads them any more.

    The brokers serve clients, so they must not end with the reader of a pipe, such as ``head -1``.
    """

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)
        if not self.is_terminal:
            self.width = _UNLIMITED

    def on_broken_pipe(self) -> None:
        self.quiet = True
        # Python flushes standard output when it ends, which must not fail, either.
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
