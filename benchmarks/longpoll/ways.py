"""How a request can wait for news: this library's ways, and the usual ones."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from benchmarks.longpoll.topic import Topic
from benchmarks.question import Contender, Sample
from purgatory import DelayedOperation, Purgatory
from purgatory.web import ClientDisconnected, poll

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# In seconds. A tenth of the usual one, since each poll that completes means an answer to write, which takes
# twenty times as long.
SLICE = 0.0005


class Way(ABC):
    """One way to wait, for all requests of a server."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        """Until there is news, or the time is over. False when the client has left and gets no answer."""

    @abstractmethod
    async def tell(self, topic: Topic, to: str | None) -> None:
        """The topic has one more record, for one client or for everybody."""


class DelayedPoll(DelayedOperation[None]):
    """Completes when there is news for its client."""

    __slots__ = ("_client", "_offset", "_topic")

    def __init__(self, topic: Topic, client: str, offset: int, timeout: float) -> None:
        super().__init__(timeout)
        self._topic = topic
        self._client = client
        self._offset = offset

    def try_complete(self) -> bool:
        return self._topic.has_news(self._client, self._offset) and self.force_complete()

    @property
    def watched(self) -> tuple[Hashable, ...]:
        """The topic's key, and that of what is for this client alone."""
        return self._topic.name, (self._topic.name, self._client)


class InPurgatory(Way):
    """An operation for each poll, that is awaited."""

    def __init__(self) -> None:
        self.polls = Purgatory("polls", slice_seconds=SLICE)

    async def __aenter__(self) -> Self:
        self.polls.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.polls.aclose()

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        delayed = DelayedPoll(topic, client, offset, seconds)
        await self.polls.try_complete_else_watch(delayed, delayed.watched)
        return True

    async def tell(self, topic: Topic, to: str | None) -> None:
        if to is None:
            await self.polls.sweep(topic.name)
        else:
            self.polls.check_and_complete((topic.name, to))


class InPurgatoryUntilLeft(InPurgatory):
    """The same by `purgatory.web`, which withdraws it when the client leaves."""

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        delayed = DelayedPoll(topic, client, offset, seconds)
        try:
            await poll(receive, self.polls, delayed, delayed.watched)
        except ClientDisconnected:
            return False
        return True


class OnCondition(Way):
    """The usual way: a condition for each topic, and a timeout around it."""

    def __init__(self) -> None:
        self._changed: dict[str, asyncio.Condition] = defaultdict(asyncio.Condition)

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news(topic, client, offset), seconds)
        return True

    async def tell(self, topic: Topic, to: str | None) -> None:
        changed = self._changed[topic.name]
        async with changed:
            changed.notify_all()

    async def _news(self, topic: Topic, client: str, offset: int) -> None:
        changed = self._changed[topic.name]
        async with changed:
            await changed.wait_for(lambda: topic.has_news(client, offset))


class OnConditionUntilLeft(OnCondition):
    """The same, with a second task that listens to the client."""

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        waiting = asyncio.ensure_future(super().wait(topic, client, offset, seconds, receive))
        leaving = asyncio.ensure_future(_left(receive))
        done, others = await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        return waiting in done


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class OnFuture(Way):
    """The floor: a future, and nothing that ever times out. Nobody looks whether there is news."""

    def __init__(self) -> None:
        self._told: dict[Hashable, list[asyncio.Future[None]]] = defaultdict(list)

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> bool:
        if not topic.has_news(client, offset):
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._told[topic.name].append(told)
            self._told[topic.name, client].append(told)
            await told
        return True

    async def tell(self, topic: Topic, to: str | None) -> None:
        for told in self._told.pop(topic.name if to is None else (topic.name, to), ()):
            if not told.done():
                told.set_result(None)


# By the names they have on the server's command line, with what they are called in the tables.
WAYS: dict[str, tuple[str, type[Way]]] = {
    "purgatory": ("purgatory", InPurgatory),
    "condition": ("Condition + wait_for", OnCondition),
    "purgatory-until-left": ("purgatory.web.poll", InPurgatoryUntilLeft),
    "condition-until-left": ("Condition + wait_for + task", OnConditionUntilLeft),
    "future": ("a future, no timeout (floor)", OnFuture),
}
SECTIONS = {
    "not told when a client leaves": ("purgatory", "condition", "future"),
    "withdraws what a client has left": ("purgatory-until-left", "condition-until-left"),
}


def contenders(measured: Callable[[str], Callable[[], Sample]]) -> tuple[Contender, ...]:
    """All ways, in sections by what they do about clients that leave."""
    return tuple(
        Contender(section, WAYS[way][0], measured(way)) for section, ways in SECTIONS.items() for way in ways
    )
