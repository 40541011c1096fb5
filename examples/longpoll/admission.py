"""Refuses what a foreign web page makes a browser send."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL_NAMES: Final = ("localhost", socket.gethostname().lower())
"""Names of this machine, which nobody else can make point to it."""


class Admission:
    """ASGI middleware that lets a request pass when its Host is this service's, and its Origin, too.

    A page of another site can make its visitors' browsers send requests here. They carry its Origin, which
    gets a 403. It can also make its own name point to the address of this service (DNS rebinding). Then the
    browser takes both for the same site, but the Host is that name, which gets a 421.

    Addresses such as 192.0.2.1 and the names of this machine are accepted as Host, because nobody can rebind
    them. `hosts` are further names, such as that of a proxy. Their pages may send requests from any port.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> ASGIApp | None:
        host = headers.get("host", "").lower()
        name = name_of(f"//{host}")
        if not (name in LOCAL_NAMES or name in self._hosts or is_address(name)):
            detail = f"this service does not answer as {name or 'nobody'}; --allow-host makes it do so"
            return JSONResponse({"detail": detail}, HTTPStatus.MISDIRECTED_REQUEST)
        origin = headers.get("origin", "").lower()
        if origin and origin.partition("://")[2] != host and name_of(origin) not in self._hosts:
            detail = f"pages of {origin} may not use this service; --allow-host makes it accept them"
            return JSONResponse({"detail": detail}, HTTPStatus.FORBIDDEN)
        return None


def name_of(url: str) -> str:
    """The name or the address in `url`. Empty when there is none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
