"""Observable instruments, which read the figures when a reader collects them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final
from weakref import WeakSet

from opentelemetry.metrics import (
    CallbackOptions,
    Instrument,
    Meter,
    MeterProvider,
    Observation,
    get_meter,
)

from purgatory import Purgatory, __version__
from purgatory._figures.event_loop import LoopSources
from purgatory._figures.figure import Metric
from purgatory._figures.journal import LOST_ROWS, Journal, lost_rows
from purgatory._figures.messages import MESSAGE_FIGURES, MessageStore
from purgatory._figures.operations import ENDED_OPERATIONS, FIGURES
from purgatory._figures.relay import RELAY_FIGURES, Relaying
from purgatory._figures.sources import Sources
from purgatory.otel.attributes import NAME, OUTCOME, SCOPE, TABLE

# An SDK that has an instrument of the same name returns that one, and drops the new callback without a word.
_MADE: Final = WeakSet[Instrument]()


class PurgatoryInstruments:
    """Shows the figures of some purgatories as instruments of OpenTelemetry.

    The figures are those of `Purgatory.statistics`. With a `journal`, there is also the number of rows that
    the journal has lost. A reader of the `meter_provider` reads the figures, in any thread, and they cost an
    operation nothing. Without a `meter_provider`, the instruments belong to the global one.

    The attribute `purgatory.name` is the name of the purgatory. In a name, code points that UTF-8 does not
    allow are escaped.

    Raises ValueError if two open purgatories have the same name: their figures would be one series. Raises
    ValueError if the `meter_provider` has these instruments already. OpenTelemetry cannot remove an
    instrument, so make the instruments once in a process.
    """

    def __init__(
        self,
        *purgatories: Purgatory,
        journal: Journal | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._purgatories = Sources(FIGURES)
        self._loops = LoopSources()
        meter = get_meter(SCOPE, __version__, meter_provider)
        _show(meter, self._purgatories)
        _show(meter, self._loops)
        if journal is not None:
            _create(meter, LOST_ROWS, partial(_lost_rows, journal))
        for purgatory in purgatories:
            self.add(purgatory)

    def __repr__(self) -> str:
        return f"<PurgatoryInstruments {self._purgatories}>"

    def add(self, purgatory: Purgatory) -> None:
        """Show one more purgatory. It takes the place of a closed purgatory of the same name.

        The counters of that name then go on. Raises ValueError if an open purgatory has the same name.
        """
        self._purgatories.add(purgatory, purgatory)
        self._loops.add_loop_of(purgatory)

    def remove(self, purgatory: Purgatory) -> bool:
        """Stop showing `purgatory`. False if it is not shown."""
        name = self._purgatories.remove(purgatory)
        if name is not None:
            self._loops.drop(name)
        return name is not None


class DelayedInstruments:
    """Shows the figures of some stores of delayed messages, as `PurgatoryInstruments` does for purgatories.

    The figures are those of `DelayedMessages.statistics`, from the moment at which the store is open. The
    attribute `purgatory.name` is the name of the store's purgatory.
    """

    def __init__(self, *stores: MessageStore, meter_provider: MeterProvider | None = None) -> None:
        self._stores = Sources(MESSAGE_FIGURES)
        _show(get_meter(SCOPE, __version__, meter_provider), self._stores)
        for store in stores:
            self.add(store)

    def __repr__(self) -> str:
        return f"<DelayedInstruments {self._stores}>"

    def add(self, store: MessageStore) -> None:
        """Show one more store. It takes the place of a closed store of the same name."""
        self._stores.add(store, store.purgatory)

    def remove(self, store: MessageStore) -> bool:
        """Stop showing `store`. False if it is not shown."""
        return self._stores.remove(store) is not None


class RelayInstruments:
    """Shows the figures of some relays, as `PurgatoryInstruments` does for purgatories.

    The figures are those of `Relay.statistics`. The attribute `purgatory.name` is the name of the relay's
    purgatory.
    """

    def __init__(self, *relays: Relaying, meter_provider: MeterProvider | None = None) -> None:
        self._relays = Sources(RELAY_FIGURES)
        _show(get_meter(SCOPE, __version__, meter_provider), self._relays)
        for relay in relays:
            self.add(relay)

    def __repr__(self) -> str:
        return f"<RelayInstruments {self._relays}>"

    def add(self, relay: Relaying) -> None:
        """Show one more relay. It takes the place of a relay of the same name whose purgatory is closed."""
        self._relays.add(relay, relay.purgatory)

    def remove(self, relay: Relaying) -> bool:
        """Stop showing `relay`. False if it is not shown."""
        return self._relays.remove(relay) is not None


def _show(meter: Meter, sources: Sources) -> None:
    for metric in dict.fromkeys(figure.metric for figure in sources.figures):
        _create(meter, metric, partial(_values, sources, metric))


def _lost_rows(journal: Journal, options: CallbackOptions) -> list[Observation]:
    return [Observation(rows, {TABLE: table}) for table, rows in lost_rows(journal).items()]


def _values(sources: Sources, metric: Metric, options: CallbackOptions) -> list[Observation]:
    return [
        Observation(
            value, {NAME: name, OUTCOME: figure.field} if metric is ENDED_OPERATIONS else {NAME: name}
        )
        for name, values in sources.values()
        for figure, value in values
        if figure.metric is metric
    ]


def _create(meter: Meter, metric: Metric, observe: Callable[[CallbackOptions], list[Observation]]) -> None:
    create: Callable[..., Instrument]
    if metric.counter:
        create = meter.create_observable_counter
    elif metric.unit == "s":
        # The sum of two ages means nothing.
        create = meter.create_observable_gauge
    else:
        create = meter.create_observable_up_down_counter
    instrument = create(metric.instrument, [observe], metric.unit, metric.help)
    if instrument in _MADE:
        raise ValueError(
            f"this meter provider has the instrument {metric.instrument!r} already: make the instruments "
            "once, and add to them"
        )
    _MADE.add(instrument)
