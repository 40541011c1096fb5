"""What a relay needs of the system that carries its publications, such as Redis or PostgreSQL.

A transport may lose publications, carry them twice and mix up their order. It must not lose them silently: it
says when it may have lost some. The relay does the rest. It connects again after a loss. It sends heartbeats
to itself, to notice a connection that is dead but looks alive. And it looks at the state again after each
gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from anyio.abc import TaskStatus

__all__ = ["Publication", "Receiver", "Transport"]


class Publication(NamedTuple):
    """A text for all processes that have subscribed to a channel."""

    channel: str
    """Up to 16 characters of ``0123456789abcdef``. The transport puts its user's prefix before it."""
    text: str
    """JSON in ASCII, at most `Transport.max_bytes` long."""


class Receiver(Protocol):
    """What a transport calls when something arrives: the relay.

    Call it on the event loop, while `Transport.run` runs. Neither method raises or awaits.
    """

    def received(self, text: str) -> None:
        """A text has arrived. O(keys in it).

        The relay ignores what it has not subscribed to. So a transport that has one channel for everything,
        such as the transport for PostgreSQL, hands over all that arrives.
        """

    def missed(self) -> None:
        """Messages may have been lost, but the connection goes on. O(1).

        Examples are a queue that overflowed, and a subscription that the client has restored by itself. The
        relay looks at all watched keys again.
        """


class Transport(Protocol):
    """Carries texts between processes, best effort: publish and subscribe.

    A relay uses it like this::

        while True:
            async with create_task_group() as group:
                await group.start(transport.run, receiver)
                await transport.subscribe(channels)    # for each connection
                ...    # subscribe and unsubscribe, one call at a time

    and calls `publish` from another task, also while no connection is there. Any call may be cancelled at any
    await, because the connection was lost or a timeout has passed. The transport is usable after that.
    """

    max_bytes: int
    """The length of the longest text that it carries: at least 200. `run` may change it when it connects."""

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> None:
        """Be connected for subscriptions: one connection, from its beginning to its end.

        Connect with nothing subscribed, call ``task_status.started()``, hand to `receiver` what arrives, and
        raise an Exception when the connection is lost. Do not connect again: the relay calls this again, with
        a backoff, and subscribes again. If the client library reconnects silently, turn that off, or let the
        reconnection end this call. (Publications get lost when nobody hears of a reconnection: channels_redis
        #256, broadcaster #144.)

        Before `started`, raise what the user should see when the relay is entered: the server cannot be
        reached, or cannot serve, such as pgbouncer in transaction mode. The relay cancels an attempt that
        takes too long. Close the connection when the call is cancelled.
        """

    async def subscribe(self, channels: Sequence[str]) -> None:
        """Subscribe to `channels`, and return when the server has confirmed all of them.

        Everything that is published on them later arrives, until `run` raises or `receiver.missed` is called.
        The confirmation counts: after it, the relay looks at the keys of the channels. The transport hands
        over what arrives before the confirmation, too. The relay calls this only while `run` runs. Raises an
        Exception when the connection is lost.

        A transport that hears everything anyway returns at once.
        """

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        """End subscriptions. It need not wait for a confirmation. Otherwise as `subscribe`."""

    async def publish(self, publications: Sequence[Publication]) -> None:
        """Publish `publications`, and return when the server has taken all of them.

        The relay makes one call at a time. Raises an Exception when it does not know whether the server has
        taken all of them. Then the relay publishes them again, with what has come meanwhile: a publication
        that arrives twice does no harm. Send them in one round trip (a pipeline, one statement): there may be
        hundreds.
        """

    async def aclose(self) -> None:
        """The relay has ended: close what the transport has opened by itself, such as a pool of connections.

        What the user has made, such as a client or a pool that was passed to the transport, stays open. The
        relay calls this once, after everything else, and does not use the transport again.
        """
