"""The names of the tables that the report shows."""

from __future__ import annotations

from typing import Final

# Tables of the dataset, some of them as `steps` and `downsampling` reduce them.
MINUTES: Final = "minutes"
PENDING: Final = "pending"
FAN_OUT: Final = "fan_out"
GAPS: Final = "gaps"
HOTTEST_KEYS: Final = "hottest_keys"
CURVES: Final = "curves"
TIMEOUTS: Final = "timeouts"
EFFECTS: Final = "effects"
VERDICTS: Final = "verdicts"
SETTINGS: Final = "settings"
RECOMMENDATIONS: Final = "recommendations"
# The segments of each table that were compacted, added up.
COMMITS: Final = "commits"
# The nodes, with the rows that each has lost.
NODES: Final = "nodes"
# One row for each kind; see `findings.kinds`.
KINDS: Final = "kinds"
