"""The colours of the outcomes, wherever outcomes are shown: dashboard, report and Grafana."""

from __future__ import annotations

from typing import Final

OUTCOME_COLOURS: Final = {
    "completed": "#0c7d69",
    "expired": "#b55a00",
    "cancelled": "#6a57c2",
    "failed": "#c4262e",
}
"""By outcome, in hexadecimal. Each has a contrast of 3 to 1 at least with a light page and with a dark one.

The dashboard has lighter ones of the same hues on a dark page.
"""
