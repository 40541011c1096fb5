"""The placement of replicas: possible brokers only, with an even load."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from examples.broker.controller.placement import place

BROKERS = st.integers(1, 6)


@given(
    live=BROKERS,
    fenced=st.integers(0, 3),
    partitions=st.integers(1, 40),
    start=st.integers(0, 50),
    data=st.data(),
)
def test_replicas_are_different_brokers_live_ones_first(
    live: int, fenced: int, partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, live + fenced))
    at_rest = range(live, live + fenced)
    placed = place(range(live), at_rest, partitions, factor, start)
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas[:live]) <= set(range(live))
        assert set(replicas[live:]) <= set(at_rest)


@given(live=BROKERS, rounds=st.integers(1, 5), start=st.integers(0, 50))
def test_every_live_broker_leads_as_often(live: int, rounds: int, start: int) -> None:
    leaders = Counter(replicas[0] for replicas in place(range(live), (), live * rounds, 1, start))
    assert set(leaders.values()) == {rounds}


@given(live=st.integers(2, 6))
def test_the_partitions_of_one_leader_are_followed_by_all_the_others(live: int) -> None:
    placed = place(range(live), (), live * (live - 1), 2, 0)
    assert len(set(placed)) == live * (live - 1)
