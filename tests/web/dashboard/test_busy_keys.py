"""The counts of the busiest keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable

from purgatory.web.dashboard.busy_keys import COUNTED, BusyKeys


def test_a_few_keys_are_counted_exactly() -> None:
    busy = BusyKeys()
    for number in range(3 * COUNTED):
        busy.count(number % COUNTED, number)
    assert sum(busy.tries.values()) == sum(range(3 * COUNTED))
    assert busy.tries[7] == 7 + (7 + COUNTED) + (7 + 2 * COUNTED)


def test_of_many_keys_the_busiest_are_counted_and_no_count_is_too_high() -> None:
    choice, busy, exact = random.Random(1), BusyKeys(), Counter[Hashable]()
    for _ in range(20_000):
        key = int(choice.paretovariate(0.5))
        busy.count(key, 1)
        exact[key] += 1
        assert len(busy.tries) <= COUNTED
    assert all(tried <= exact[key] for key, tried in busy.tries.items())
    assert {key for key, _ in exact.most_common(10)} <= set(busy.tries)
    # The keys that are busy all the time are never forgotten.
    assert all(busy.tries[key] == tried for key, tried in exact.most_common(10))


def test_it_keeps_the_keys_with_the_most_tries() -> None:
    busy = BusyKeys()
    for key, tried in {"a": 2, "b": 5, "c": 1}.items():
        busy.count(key, tried)
    busy.keep(2)
    assert busy.tries == {"b": 5, "a": 2}
    busy.keep(2)
    assert busy.tries == {"b": 5, "a": 2}
