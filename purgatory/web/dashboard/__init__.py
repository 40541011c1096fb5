"""The dashboard: a live page about purgatories, as an ASGI app. Needs the extra ``web``."""

from purgatory.web.dashboard.application import Authorize, dashboard

__all__ = ["Authorize", "dashboard"]
