"""Addresses of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from purgatory.pipeline.addresses import absolute, address_of, in_store, output_address_of, table_address_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("journal/", "journal"),
        ("/", "/"),
        ("file:///a%20b/", "/a%20b"),
        ("2026-11-20T12:00", "2026-11-20T12:00"),
        ("C:\\journal", "C:\\journal"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a b/nodes/*/", "s3://bucket/a b/nodes/*"),
        ("s3://bucket/node-?/x", "s3://bucket/node-?/x"),
        ("gs://bucket/journal", "gs://bucket/journal"),
        ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/x"),
        ("hdfs://node:8020/journal", "hdfs://node:8020/journal"),
    ],
)
def test_an_address_has_no_slash_at_its_end(text: str, address: str) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3a://bucket/x", "must be a path, or begin with s3://, gs://, abfss://, hdfs://"),
        ("s3:///x", "must name a bucket or a container, as in s3://bucket/folder"),
    ],
)
def test_an_address_that_no_client_knows_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        address_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://key:sesame@bucket/x",
        "s3://bucket/x?secret_key=sesame",
        "abfss://box@account.dfs.core.windows.net/x?sv=1&sig=sesame",
        "hdfs://user:sesame@node:8020/x",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="must have no password and no signature in it") as raised:
        address_of(text)
    assert "sesame" not in str(raised.value)


def test_the_parts_of_an_address_in_a_store() -> None:
    assert in_store("s3://bucket/a/b") == ("s3", "bucket", "a/b")
    assert in_store("s3://bucket") == ("s3", "bucket", "")
    assert in_store("a/b") is None


def test_a_path_means_the_same_in_every_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("journal") == f"{tmp_path}/journal"
    assert absolute("s3://bucket/journal") == "s3://bucket/journal"


def test_what_is_written_to_has_a_name_in_utf8() -> None:
    assert output_address_of("dataset/é/") == "dataset/é"
    with pytest.raises(ValueError, match="must be UTF-8"):
        output_address_of("caf\udce9")
    assert address_of("caf\udce9") == "caf\udce9"


def test_a_table_is_refused_where_its_library_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table_address_of("100% é [1]") == "100% é [1]"
    for name in ("a%20b", "a\\b"):
        with pytest.raises(ValueError, match="must have no backslash, and no % before two digits"):
            table_address_of(f"s3://bucket/{name}")
    (tmp_path / "feature%2Flogin").mkdir()
    monkeypatch.chdir(tmp_path / "feature%2Flogin")
    with pytest.raises(ValueError, match="must have no backslash, and no % before two digits") as raised:
        table_address_of("dataset")
    assert f"{tmp_path}/feature%2Flogin/dataset" in str(raised.value)
