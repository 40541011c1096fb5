"""The clients of object stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyarrow import fs

from purgatory.pipeline import locations, stores
from purgatory.pipeline.addresses import SCHEMES

VARIABLES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    stores.client.cache_clear()
    yield
    stores.client.cache_clear()


def test_each_scheme_has_a_client() -> None:
    assert set(stores.CLIENTS) == set(SCHEMES)


def test_the_endpoint_and_the_region_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9000/")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    system, path = locations.file_system("s3://bucket/a b")
    assert (system.type_name, system.region, path) == ("s3", "eu-west-1", "bucket/a b")
    same = fs.S3FileSystem(
        endpoint_override="127.0.0.1:9000",
        scheme="http",
        region="eu-west-1",
        connect_timeout=10,
        request_timeout=30,
    )
    assert system == same
    assert locations.delta_options("s3://bucket/a b") == {
        "AWS_REGION": "eu-west-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9000/",
        "AWS_ALLOW_HTTP": "true",
    }


def test_without_a_region_the_bucket_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs, "resolve_s3_region", {"bucket": "eu-north-1"}.__getitem__)
    assert locations.delta_options("s3://bucket/x") == {"AWS_REGION": "eu-north-1"}


def test_an_endpoint_may_have_no_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "store.example")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    system, _ = locations.file_system("s3://bucket")
    same = fs.S3FileSystem(
        endpoint_override="store.example", region="us-east-1", connect_timeout=10, request_timeout=30
    )
    assert system == same
    assert locations.delta_options("s3://bucket")["AWS_ENDPOINT_URL"] == "https://store.example"


def test_the_clients_of_google_and_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    system, path = locations.file_system("abfss://box@account.dfs.core.windows.net/a/b")
    assert (system.type_name, path) == ("abfs", "box/a/b")
    system, path = locations.file_system("gs://bucket")
    assert (system.type_name, path) == ("gcs", "bucket")
    assert locations.delta_options("gs://bucket") == {}


def test_hdfs_needs_a_library_of_hadoop() -> None:
    with pytest.raises(OSError, match=r"libjvm|libhdfs"):
        locations.file_system("hdfs://127.0.0.1:1/a")
