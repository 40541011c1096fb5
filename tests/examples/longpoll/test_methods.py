"""A method that a path does not have is refused, with the methods that the path has."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/topics/lobby", "GET, POST"),
        ("/presence/ada", "DELETE, POST"),
        ("/presence", "GET"),
        ("/news", "GET"),
        ("/metrics", "GET"),
        ("/", "GET"),
    ],
)
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH", "TRACE"])
async def test_the_refusal_names_all_methods_of_the_path(
    client: httpx.AsyncClient, path: str, allowed: str, method: str
) -> None:
    refused = await client.request(method, path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, allowed)


async def test_the_dashboard_names_its_own_methods(client: httpx.AsyncClient) -> None:
    refused = await client.post("/dashboard/data")
    assert refused.status_code == 405
    assert set(refused.headers["Allow"].split(", ")) == {"GET", "HEAD"}
