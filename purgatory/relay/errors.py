"""The errors of `purgatory.relay`."""

from __future__ import annotations

from purgatory.errors import PurgatoryError


class RelayClosed(PurgatoryError):
    """Raised when a relay that is not open cannot do what it is asked for.

    Also raised by `Relay.signalled` when the relay ends before the engine has taken the signal.
    """
