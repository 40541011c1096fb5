"""Gaps are merged."""

from __future__ import annotations

from purgatory.journal.gap import Gap


def test_two_gaps_merge_into_one_that_spans_both() -> None:
    early, late = Gap(1.0, 5.0, operations=1, checks=10), Gap(3.0, 4.0, operations=2, checks=20)
    assert early | late == late | early == Gap(1.0, 5.0, operations=3, checks=30)
    assert early | None == early
