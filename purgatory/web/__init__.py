"""Long polls, server-sent events and the live dashboard for ASGI applications. Needs the extra ``web``."""

from purgatory.web.dashboard import dashboard
from purgatory.web.event_stream import EventStream
from purgatory.web.long_poll import ClientDisconnected, PollWithdrawn, long_poll, poll
from purgatory.web.position import Position
from purgatory.web.resume import client_has, resumable
from purgatory.web.server_sent_event import ServerSentEvent
from purgatory.web.shutdown import close_on_signal

__all__ = [
    "ClientDisconnected",
    "EventStream",
    "PollWithdrawn",
    "Position",
    "ServerSentEvent",
    "client_has",
    "close_on_signal",
    "dashboard",
    "long_poll",
    "poll",
    "resumable",
]
