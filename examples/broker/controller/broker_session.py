"""The wait for a broker that falls silent."""

from collections.abc import Callable

from purgatory import DelayedOperation


class BrokerSession(DelayedOperation[None]):
    """Expires when the broker was not heard of for the timeout; a heartbeat is a ``reschedule``, in O(1).

    Nothing completes it: a broker that takes its leave, or registers anew, has it withdrawn.
    """

    __slots__ = ("_broker_id", "_silent")

    def __init__(self, broker_id: int, timeout: float, silent: Callable[[int], None]) -> None:
        super().__init__(timeout)
        self._broker_id = broker_id
        self._silent = silent

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self._silent(self._broker_id)
