"""An agenda against a sorted list."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from purgatory.delayed.message import Location
from purgatory.delayed.storage.agenda import Agenda

DUES = st.integers(-5, 5)


def token_of(number: int) -> int:
    """Tokens whose bytes also occur across two others."""
    return number % 3 << 56 | number << 8 | number % 2


def agenda_of(locations: list[Location]) -> Agenda:
    agenda = Agenda()
    for location in locations:
        agenda.put(location.due, location.position, location.token)
    return agenda


class AgendaMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.agenda = Agenda()
        # In the order of due times, and in that in which they were added.
        self.expected: list[Location] = []
        self.next = 0

    @rule(due=DUES, count=st.integers(0, 4))
    def add(self, due: int, count: int) -> None:
        new = [Location(due, number, token_of(number)) for number in range(self.next, self.next + count)]
        self.next += count
        if count == 1:
            self.agenda.put(due, new[0].position, new[0].token)
        else:
            self.agenda.add(agenda_of(new))
        self.expected += new
        self.expected.sort(key=lambda place: place.due)

    @rule(until=DUES, limit=st.integers(0, 5))
    def take(self, until: int, limit: int) -> None:
        taken = [place for place in self.expected if place.due <= until][:limit]
        assert self.agenda.take(until, limit) == taken
        del self.expected[: len(taken)]

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(self.expected))
        assert self.agenda.remove(place.due, place.token) == place
        self.expected.remove(place)

    @rule(due=DUES)
    def remove_what_is_not_there(self, due: int) -> None:
        assert self.agenda.remove(due, token_of(self.next)) is None

    @invariant()
    def agrees(self) -> None:
        assert len(self.agenda) == len(self.expected)
        if self.expected:
            assert self.agenda.next_due == self.expected[0].due
        else:
            assert self.agenda.next_due is None
        assert repr(self.agenda) == f"<Agenda of {len(self.expected)}, next due {self.agenda.next_due}>"


TestAgenda = AgendaMachine.TestCase
TestAgenda.settings = settings(max_examples=settings().max_examples, stateful_step_count=30, deadline=None)


def test_a_token_is_not_found_across_two_others() -> None:
    agenda = agenda_of([Location(7, 1, 1), Location(7, 2, 1 << 56)])
    assert agenda.remove(7, 0) is None
    agenda.put(7, 3, 0)
    assert agenda.remove(7, 0) == Location(7, 3, 0)
