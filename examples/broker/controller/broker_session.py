"""The delayed operation that ends a broker's session."""

from collections.abc import Callable

from purgatory import DelayedOperation


class BrokerSession(DelayedOperation[None]):
    """Expires when a broker sends no heartbeat for ``timeout`` seconds. A heartbeat reschedules it in O(1).

    It never completes. It is cancelled when the broker stops or registers again.
    """

    __slots__ = ("_broker_id", "_expired")

    def __init__(self, broker_id: int, timeout: float, expired: Callable[[int], None]) -> None:
        super().__init__(timeout)
        self._broker_id = broker_id
        self._expired = expired

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self._expired(self._broker_id)
