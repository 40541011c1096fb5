"""A store in the hands of a test that remembers what it was promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.agenda import Agenda, home_of
from purgatory.delayed.storage.frames import Kind
from purgatory.delayed.storage.requests import End, IdTaken, Put, Stored
from purgatory.delayed.storage.store import Store
from tests.delayed.storage.simulated_disk import SimulatedDisk, Survival

PATH: Final = Path("/service/messages")
SLOT_MS: Final = 1_000
NOW: Final = 1_700_000_000_000
# All slots.
END_OF_TIME: Final = 1 << 45


class Content(NamedTuple):
    """What a message must still have when it is found. The payload tells messages apart."""

    due: int
    name: str | None
    payload: bytes


class StoreRun:
    """Calls a store as the rest of the package does, and knows which messages it must have.

    A message is `promised` from the moment its Put was answered. When it is to end, it becomes `doubtful`,
    and `over` once that was answered. A Put that was not answered is doubtful, too. After a crash, the store
    must have all promised messages once, no message that is over, and each doubtful one at most once.
    """

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        # What the clock says.
        self.now = NOW
        self.promised: dict[int, Content] = {}
        self.doubtful: set[Content] = set()
        self.over: dict[int, Content] = {}
        self.cancelled: set[int] = set()
        # Where the messages are that are due soon.
        self.soon: dict[int, Location] = {}
        self.store: Store

    def open(self) -> None:
        self.store = Store(PATH, SLOT_MS, self.disk, self.now)
        self.soon = {location.token: location for location in locations(self.store.agenda)}
        assert self.store.segments == Counter(home_of(each.position) for each in self.soon.values())

    def close(self) -> None:
        self.store.close()

    def put(self, due: int, payload: bytes, name: str | None = None, *, soon: bool = False) -> int | None:
        """The token of the message; None if the id is taken."""
        content = Content(due, name, payload)
        known = content in self.promised.values()
        if not known:
            self.doubtful.add(content)
        [answer] = self.store.commit([Put(due, name, payload, soon)])
        if isinstance(answer, IdTaken):
            assert any(other.name == name for other in self.promised.values())
            self.doubtful.discard(content)
            return None
        assert isinstance(answer, Stored)
        assert answer.repeated == (known and name is not None)
        if answer.repeated:
            assert self.promised[answer.token] == content
        else:
            assert name is None or name not in {other.name for other in self.promised.values()}
            self.promised[answer.token] = content
            self.doubtful.discard(content)
            if soon:
                self.soon[answer.token] = Location(due, answer.position, answer.token)
        return answer.token

    def end(self, token: int, kind: Kind, *, check: bool = False) -> None:
        content = self.promised.pop(token)
        self.doubtful.add(content)
        try:
            [answer] = self.store.commit([End(kind, token, content.due, content.name is not None, check)])
        except OSError:
            # Then nothing was written.
            self.doubtful.discard(content)
            self.promised[token] = content
            raise
        assert answer is True
        self.doubtful.discard(content)
        self.over[token] = content
        self.soon.pop(token, None)
        if kind is Kind.CANCELLED and self.now == NOW:
            self.cancelled.add(token)

    def cancel(self, token: int) -> None:
        self.end(token, Kind.CANCELLED, check=token not in self.soon)

    def deliver(self, token: int) -> None:
        self.end(token, Kind.DELIVERED)

    def cancel_again(self, token: int) -> None:
        content = self.over[token]
        [answer] = self.store.commit(
            [End(Kind.CANCELLED, token, content.due, content.name is not None, check=True)]
        )
        assert answer is False

    def set_the_clock(self, now: int) -> None:
        """The store may forget what has ended, and nothing else."""
        self.now = now
        self.cancelled.clear()

    def spread(self) -> None:
        self.store.change(self.store.mover.move, self.store.log.seal(), self.now)

    def spread_soon(self) -> None:
        self.store.change(self.store.mover.move_soon, self.store.log.seal(), (NOW + 30_000) // SLOT_MS)

    def remove(self) -> None:
        """Remove the segments and slot files whose messages have ended."""
        homes = {home_of(location.position) for location in self.soon.values()}
        self.store.change(self.store.log.remove_oldest, self.store.mover.checkpoint.spread, homes)
        for slot in self.store.slots.present(END_OF_TIME):
            in_log = {self.promised[token].due // SLOT_MS for token in self.soon}
            if not self.store.index(slot) and slot not in in_log:
                self.store.change(self.store.slots.remove, slot)

    # After a crash

    def after_power_cut(self, survival: Survival) -> StoreRun:
        """The same promises, and what is left of the disk. The store is not open."""
        run = StoreRun(self.disk.after_power_cut(survival))
        run.promised, run.doubtful = dict(self.promised), set(self.doubtful)
        run.over, run.cancelled = dict(self.over), set(self.cancelled)
        run.now = self.now
        return run

    def found(self) -> list[Message]:
        """All messages, as they are delivered: from the log, and from the slot files."""
        self.spread()
        places = list(self.soon.values())
        for slot in self.store.slots.present(END_OF_TIME):
            places += locations(self.store.index(slot))
        messages: list[Message] = []
        while places:
            read = self.store.read(places)
            messages += [message for message in read if isinstance(message, Message)]
            del places[: len(read)]
        assert len({message.token for message in messages}) == len(messages), "a message is found twice"
        return messages

    def check(self) -> None:
        """What was promised is there, and nothing else. From now on, what was in doubt is known."""
        assert self.store.slots.present(END_OF_TIME) == sorted(self.store.slots.present(END_OF_TIME))
        found = {message.token: message for message in self.store.pending()}
        doubtful = set(self.doubtful)
        for token, content in self.promised.items():
            assert _content(found[token]) == content
        for token, message in found.items():
            if token not in self.promised:
                assert token not in self.over
                doubtful.remove(_content(message))
                self.promised[token] = _content(message)
        self.doubtful.clear()
        self.check_ids()
        assert self.disk.opened == 0

    def check_deliveries(self) -> None:
        """What was promised is delivered, each message once, and nothing else."""
        found = {message.token: _content(message) for message in self.found()}
        assert found == self.promised

    def check_ids(self) -> None:
        names = {content.name: token for token, content in self.promised.items() if content.name}
        for name, token in names.items():
            taken = self.store.ids.taken(name)
            assert taken is not None
            assert taken.token == token
        for content in self.over.values():
            if content.name and content.name not in names:
                assert self.store.ids.taken(content.name) is None
        for token in self.cancelled:
            assert self.store.ids.ended(token)


def locations(agenda: Agenda) -> list[Location]:
    found = agenda.take(END_OF_TIME, END_OF_TIME)
    assert not agenda
    return found


def _content(message: Message) -> Content:
    return Content(message.due, message.name, message.payload)


Step = Callable[[StoreRun], object]
