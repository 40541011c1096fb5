"""An agenda against a sorted list."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from purgatory.delayed.agenda import Agenda

DUES = st.integers(-5, 5)


class AgendaMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda()
        # Positions by due time, in the order in which they were added.
        self.expected: list[tuple[int, int]] = []
        self.next = 0

    @rule(due=DUES, count=st.integers(0, 4))
    def add(self, due: int, count: int) -> None:
        positions = list(range(self.next, self.next + count))
        self.next += count
        self.agenda.add(due, positions)
        self.expected += [(due, position) for position in positions]
        self.expected.sort(key=lambda place: place[0])

    @rule(until=DUES, limit=st.integers(0, 5))
    def take(self, until: int, limit: int) -> None:
        taken = [place for place in self.expected if place[0] <= until][:limit]
        assert self.agenda.take(until, limit) == taken
        del self.expected[: len(taken)]

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(self.expected))
        self.agenda.remove(*place)
        self.expected.remove(place)

    @rule(due=DUES)
    def remove_what_is_not_there(self, due: int) -> None:
        with pytest.raises(ValueError, match="not in"):
            self.agenda.remove(due, self.next)

    @invariant()
    def agrees(self) -> None:
        assert len(self.agenda) == len(self.expected)
        for due in range(-5, 6):
            assert self.agenda.at(due) == [place for place in self.expected if place[0] == due]
        if self.expected:
            assert self.agenda.next_due == self.expected[0][0]
        else:
            assert self.agenda.next_due is None
        assert repr(self.agenda) == f"<Agenda of {len(self.expected)}, next due {self.agenda.next_due}>"


TestAgenda = AgendaMachine.TestCase
TestAgenda.settings = settings(max_examples=settings().max_examples, stateful_step_count=30, deadline=None)
