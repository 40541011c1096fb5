"""What a relay needs of the system that carries its messages, such as Redis or PostgreSQL.

An engine may lose messages, carry them twice and mix up their order. It must not lose them silently: it says
so when it may have lost some. The relay does the rest. It connects again after a loss, sends heartbeats to
itself to notice a connection that is dead but looks alive, and looks at the state again after each gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from anyio.abc import TaskStatus

__all__ = ["Engine", "Message", "Receiver"]


class Message(NamedTuple):
    """A text for all who have subscribed to a channel."""

    channel: str
    """Up to 16 characters of ``0123456789abcdef``. An engine puts a prefix of its user's before it."""
    text: str
    """JSON in ASCII, at most `Engine.max_bytes` long."""


class Receiver(Protocol):
    """What an engine calls when something arrives: the relay.

    Call it on the event loop, while `Engine.run` runs. Neither method raises or awaits.
    """

    def received(self, text: str) -> None:
        """A text has arrived. O(keys in it).

        The relay ignores what it has not subscribed to. So an engine with one channel for everything, as
        PostgreSQL's should have, hands over all that arrives.
        """

    def missed(self) -> None:
        """Messages may have been lost, but the connection goes on. O(1).

        Examples are a queue that overflowed, and a subscription that the client has restored by itself. The
        relay looks at all watched keys again.
        """


class Engine(Protocol):
    """Carries texts between processes, best effort: publish and subscribe.

    A relay uses it like this::

        while True:
            async with create_task_group() as group:
                await group.start(engine.run, receiver)
                await engine.subscribe(channels)      # again for each connection
                ...                                   # subscribe and unsubscribe, one call at a time

    and calls `publish` from another task, also while no connection is there. Any call may be cancelled at any
    await, because the connection was lost or a timeout has passed. The engine is usable after that.
    """

    max_bytes: int
    """The longest text that it carries. At least 200."""

    async def run(self, receiver: Receiver, *, task_status: TaskStatus[None]) -> None:
        """Be connected for subscriptions: one connection, from its beginning to its end.

        Connect with nothing subscribed, call ``task_status.started()``, hand to `receiver` what arrives, and
        raise an Exception when the connection is lost. Do not connect again: the relay calls this again, with
        a backoff, and subscribes again. A client that reconnects silently must be kept from that, or its
        reconnection must end this call. (A reconnection that nobody hears of is how messages get lost:
        channels_redis #256, broadcaster #144.)

        Before `started`, raise what the user should see when the relay is entered: the server cannot be
        reached, or cannot serve, such as pgbouncer in transaction mode. The relay cancels an attempt that
        takes too long. Close the connection when the call is cancelled.
        """

    async def subscribe(self, channels: Sequence[str]) -> None:
        """Subscribe to `channels`, and return when the server has confirmed all of them.

        Everything that is published on them later arrives, until `run` raises or `receiver.missed` is called.
        The confirmation is what counts: the relay looks at the keys of the channels after it. The engine
        hands over what arrives before it, too. Is called only while `run` runs. Raises an Exception when the
        connection is lost.

        An engine that hears everything anyway returns at once.
        """

    async def unsubscribe(self, channels: Sequence[str]) -> None:
        """Subscribe to these no longer. It need not wait for a confirmation. Otherwise as `subscribe`."""

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish `messages`, and return when the server has taken all of them.

        It is not called a second time before it has returned. Raises an Exception when it does not know: the
        relay publishes them again then, with what has come meanwhile, since a message that arrives twice
        does no harm. Send them in one round trip (a pipeline, one statement): there may be hundreds.
        """

    async def aclose(self) -> None:
        """The relay has ended: close what the engine has opened by itself, such as a pool of connections.

        What the user has made, such as a client or a pool that was passed to the engine, stays open. It is
        called once, after everything else. The engine is not used again.
        """
