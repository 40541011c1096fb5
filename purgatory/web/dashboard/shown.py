"""A purgatory that the page shows, and what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from purgatory import Purgatory
from purgatory._figures.messages import MessageStore
from purgatory._figures.relay import Relaying
from purgatory.web.dashboard.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Shown:
    """A purgatory, its store of delayed messages and its relay, if any. It is recorded from now on."""

    purgatory: Purgatory
    store: MessageStore | None = None
    relay: Relaying | None = None
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        recorder = Recorder(lambda: self.purgatory.statistics().refused)
        object.__setattr__(self, "recorder", recorder)
        self.purgatory.add_observer(recorder)
