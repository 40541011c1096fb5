"""A session of a group's member lasts until no heartbeat has come for the session timeout."""

from collections.abc import Callable

from examples.broker.waits.parking import park
from purgatory import DelayedOperation, Purgatory

SessionKey = tuple[str, str]
"""The group id and the member id."""


class DelayedHeartbeat(DelayedOperation[None]):
    """Completes once the member has left its group. At the session timeout it calls ``expired``.

    Each heartbeat gives it the session timeout again. (Kafka's DelayedHeartbeat completes at each heartbeat,
    and Kafka parks another one.) Without a timeout the session does not end: the member waits for an answer,
    and sends no heartbeats.
    """

    __slots__ = ("_expired", "_has_left", "key")

    def __init__(
        self,
        timeout: float | None,
        key: SessionKey,
        has_left: Callable[[], bool],
        expired: Callable[[], None],
    ) -> None:
        super().__init__(timeout)
        self.key = key
        self._has_left = has_left
        self._expired = expired

    def try_complete(self) -> bool:
        return self._has_left() and self.force_complete()

    def on_expiration(self) -> None:
        self._expired()


def park_heartbeat(heartbeats: Purgatory, heartbeat: DelayedHeartbeat) -> None:
    """Begin a session."""
    park(heartbeats, heartbeat, [heartbeat.key])


def record_heartbeat(heartbeats: Purgatory, key: SessionKey, timeout: float | None) -> bool:
    """Give a session this timeout from now on. Return False when there is none."""
    return any(session.reschedule(timeout) for session in heartbeats.operations(key))


def check_heartbeat(heartbeats: Purgatory, key: SessionKey) -> None:
    """Call it when the member has left, and when the broker no longer coordinates the group."""
    heartbeats.check_and_complete(key)
