"""A viewer without a browser: an HTTP client of a host application with the dashboard."""

from __future__ import annotations

from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from purgatory import Purgatory
from purgatory.web.dashboard import Authorize, dashboard


def client(*purgatories: Purgatory, authorize: Authorize | None = None) -> httpx.AsyncClient:
    """A client of a host application that has a dashboard of `purgatories` under /inside."""
    app = Starlette(routes=[Mount("/inside", dashboard(*purgatories, authorize=authorize))])
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://host/inside/")


async def data(viewer: httpx.AsyncClient, **parameters: str) -> dict[str, Any]:
    response = await viewer.get("data", params=parameters)
    assert response.status_code == 200
    return response.json()  # type: ignore[no-any-return]  # JSON
