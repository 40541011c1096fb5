"""The clients of object stores. They read the keys from the usual variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from pyarrow import fs

# In seconds. By default, a store has one second to accept a connection, and three to answer.
_TIMEOUTS: Final = {"connect_timeout": 10, "request_timeout": 30}

# A file system of pyarrow, and the path of the bucket or the container in it.
Client = tuple[fs.FileSystem, str]


@cache
def client(scheme: str, place: str) -> Client:
    """The client of a store. `place` is what follows ``scheme://`` in an address, up to the next slash."""
    return CLIENTS[scheme](place)


def delta_options(scheme: str, place: str) -> Mapping[str, str]:
    """What deltalake needs beside the variables of the environment. No key is in it."""
    if scheme != "s3":
        return {}
    system, _ = client(scheme, place)
    options = {"AWS_REGION": system.region}
    if endpoint := _endpoint():
        options |= {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": str(endpoint.startswith("http:")).lower()}
    return options


def _endpoint() -> str | None:
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    # pyarrow knows addresses without a scheme, and deltalake does not.
    return f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint


def _s3(bucket: str) -> Client:
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    endpoint = _endpoint()
    if not endpoint:
        system = fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket), **_TIMEOUTS)
    else:
        scheme, _, host = endpoint.rstrip("/").partition("://")
        system = fs.S3FileSystem(region=region, endpoint_override=host, scheme=scheme, **_TIMEOUTS)
    return system, bucket


def _gcs(bucket: str) -> Client:
    return fs.GcsFileSystem(), bucket


def _azure(place: str) -> Client:
    container, _, host = place.partition("@")
    key = os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")
    return fs.AzureFileSystem(host.partition(".")[0], account_key=key), container


def _hdfs(place: str) -> Client:
    return fs.HadoopFileSystem.from_uri(f"hdfs://{place}"), ""


CLIENTS: Final[Mapping[str, Callable[[str], Client]]] = {
    "s3": _s3,
    "gs": _gcs,
    "abfss": _azure,
    "hdfs": _hdfs,
}
