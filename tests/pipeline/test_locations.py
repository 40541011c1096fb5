"""Files in a file system of this machine, and in an object store."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from purgatory.pipeline import locations
from purgatory.pipeline.addresses import delta_uri, table_address_of
from tests.pipeline.odd_names import ODD_NAMES, REFUSED_NAMES


@pytest.fixture(params=["local", "store"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A folder that a test fills."""
    if request.param == "local":
        return f"{tmp_path}/root"
    return f"{request.getfixturevalue('bucket')}/root"


def write(address: str, content: bytes = b"content") -> None:
    with locations.created(address) as file:
        file.write(content)


def read(address: str) -> bytes:
    with locations.opened(address) as file:
        return file.read()


def test_what_is_written_is_read(root: str) -> None:
    path = f"{root}/a/b"
    write(path)
    assert read(path) == b"content"
    assert locations.sizes([path]) == {path: 7}
    assert locations.size(path) == 7
    age = datetime.now(UTC) - locations.info(path).mtime
    assert abs(age) < timedelta(minutes=1)


def test_what_is_there(root: str) -> None:
    write(f"{root}/a/b")
    assert [locations.exists(path) for path in (root, f"{root}/a/b", f"{root}/a/c")] == [True, True, False]
    assert [locations.is_folder(path) for path in (root, f"{root}/a/b", f"{root}/c")] == [True, False, False]
    assert locations.names_in(root) == ["a"]
    assert locations.names_in(f"{root}/none") == []


def test_files_are_listed_by_name(root: str) -> None:
    for name in ("b", "a", "folder/c"):
        write(f"{root}/{name}", name.encode())
    files = list(locations.files_in(root))
    assert [(file.address, file.size) for file in files] == [(f"{root}/a", 1), (f"{root}/b", 1)]
    assert all(abs(datetime.now(UTC) - file.modified) < timedelta(minutes=1) for file in files)


def test_deleting_what_is_gone_is_no_error(root: str) -> None:
    for name in ("a/b", "a/c/d", "e"):
        write(f"{root}/{name}")
    locations.delete(f"{root}/e")
    locations.delete(f"{root}/e")
    assert locations.names_in(root) == ["a"]
    locations.delete_folder(f"{root}/a")
    locations.delete_folder(f"{root}/a")
    assert locations.names_in(root) == []


def test_a_folder_is_found_by_its_name_before_its_name_is_a_pattern(root: str) -> None:
    for name in ("nodes/a[1]/x", "nodes/a1/x", "nodes/b/x", "nodes/.hidden/x", "nodes/file"):
        write(f"{root}/{name}")
    assert locations.folders(f"{root}/nodes/a[1]") == [f"{root}/nodes/a[1]"]
    assert locations.folders(f"{root}/nodes/[ab]*") == [
        f"{root}/nodes/{name}" for name in ("a1", "a[1]", "b")
    ]
    assert locations.folders(f"{root}/*/b") == [f"{root}/nodes/b"]
    assert locations.folders(f"{root}/nodes/*") == locations.folders(f"{root}/nodes/[ab]*")
    assert locations.folders(f"{root}/none/*") == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_means_the_same_to_all_libraries(name: str, root: str) -> None:
    rows = pa.table({"id": [1]})
    table = f"{root}/{name}"
    with locations.created(f"{table}/{name}/rows.parquet") as file:
        pq.write_table(rows, file)
    assert locations.folders(table) == [table]
    assert locations.names_in(root) == [name]
    assert locations.parquet(f"{table}/{name}/rows.parquet").read() == rows
    if name in REFUSED_NAMES:
        with pytest.raises(ValueError, match="must have no backslash, and no % before two digits"):
            table_address_of(table)
        return
    uri, options = delta_uri(f"{table_address_of(table)}/{name}"), dict(locations.delta_options(table))
    DeltaTable.create(uri, rows.schema, storage_options=options)
    assert locations.is_folder(f"{table}/{name}/_delta_log")
    assert DeltaTable.is_deltatable(uri, options)


def test_only_a_path_has_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(".")
    assert locations.real(f"{tmp_path}/link/link") == str(tmp_path)
    assert locations.real("s3://bucket/link") == "s3://bucket/link"


def test_only_a_path_can_become_readable(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch(mode=0)
    assert locations.is_readable(str(path)) == (os.getuid() == 0)
    path.chmod(0o600)
    assert locations.is_readable(str(path))
    assert not locations.is_readable("s3://bucket/a")


def test_what_was_written_to_a_path_can_be_forced_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: synced.append("all"))
    locations.sync("s3://bucket/dataset")
    assert synced == []
    locations.sync(str(tmp_path))
    assert synced == ["all"]


def test_a_store_tells_browsers_what_a_page_is(bucket: str) -> None:
    with locations.created(f"{bucket}/index.html", "text/html") as file:
        file.write(b"<p>")
    system, path = locations.file_system(f"{bucket}/index.html")
    assert system.open_input_stream(path).metadata()["Content-Type"] == b"text/html"
