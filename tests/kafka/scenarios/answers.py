"""Messages as plain values: requests are made from them, and answers are compared as them."""

import hashlib
import re
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final
from uuid import UUID

from examples.broker.protocol.conversion import converter, shape_of

Plain = Any
"""Numbers, text, bytes and None, and lists and dictionaries of them."""

# base offset, batch length, partition leader epoch, magic, crc, attributes, last offset delta,
# base timestamp, max timestamp, producer id, producer epoch, base sequence, record count
_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH_COUNTS_FROM: Final = 12
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Milliseconds. A test session is shorter.
_RECENTLY: Final = 3_600_000


@dataclass(frozen=True)
class _Nothing:
    """A message without fields."""


def message(entity_type: Any, values: Mapping[str, Plain]) -> Any:
    """Return a kio entity with these values. A field that is not given has its default, or is empty or 0."""
    shapes = {field.name: shape_of(field) for field in fields(entity_type)}
    given = {
        name: tuple(_value(shapes[name].type, entry) for entry in value)
        if shapes[name].is_array and value is not None
        else _value(shapes[name].type, value)
        for name, value in values.items()
    }
    absent = converter(_Nothing, entity_type)(_Nothing())
    return entity_type(**{name: given.get(name, getattr(absent, name)) for name in shapes})


def _value(kind: Any, value: Plain) -> Any:
    if is_dataclass(kind):
        return None if value is None else message(kind, value)
    if isinstance(kind, type) and issubclass(kind, timedelta):
        return timedelta(milliseconds=value)
    return value


def plain(value: Any) -> Plain:
    """Return a kio entity as plain values: an error by its name, times in milliseconds."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    return str(value) if isinstance(value, UUID) else value


def comparable(value: Plain) -> Plain:
    """Return the value without what differs between any two clusters, such as ports and random ids.

    Equal ids are equal afterwards, too: the first one that appears becomes "id 1".
    """
    return _Comparison().of(value)


class _Comparison:
    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._rules: Mapping[str, Callable[[Any], Plain]] = {
            "cluster_id": _whether_text,
            "error_message": _whether_text,
            "host": _whether_text,
            "port": lambda port: port if port < 1 else "a port",
            "controller_id": lambda broker_id: broker_id if broker_id < 0 else "a broker",
            "session_id": lambda session_id: session_id if session_id < 1 else "a session",
            "producer_id": lambda producer_id: producer_id if producer_id < 0 else self._named(producer_id),
            "timestamp": _when,
            "log_append_time": _when,
            "last_timestamp": _when,
            "base_timestamp": _when,
            "max_timestamp": _when,
            "isr_nodes": sorted,
            "brokers": self._sorted,
            "members": self._sorted,
        }

    def of(self, value: Plain) -> Plain:
        if isinstance(value, dict):
            return {key: self._field(key, entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(entry) for entry in value]
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._named(found.group()), value)
        return value

    def _field(self, name: Any, value: Plain) -> Plain:
        rule = self._rules.get(name)
        return self.of(value) if rule is None or value is None else rule(value)

    def _sorted(self, values: list[Plain]) -> Plain:
        # Random ids get their names in an order that does not depend on them.
        ordered = sorted(values, key=lambda value: _UUID.sub("", repr(value)))
        return sorted(map(self.of, ordered), key=repr)

    def _named(self, identity: object) -> str:
        return self._names.setdefault(identity, f"id {len(self._names) + 1}")


def _whether_text(text: str) -> str:
    return "text" if text else ""


def _when(timestamp: int) -> Plain:
    return "now" if abs(timestamp - time.time() * 1000) < _RECENTLY else timestamp


def batches(records: bytes | None) -> Plain:
    """Return the headers of record batches, and a digest of the records of each. A cut batch is left out."""
    if records is None:
        return None
    found: list[Plain] = []
    position = 0
    while position + _BATCH.size <= len(records):
        header = _BATCH.unpack_from(records, position)
        stop = position + _LENGTH_COUNTS_FROM + header[1]
        if stop > len(records):
            break
        found.append(
            {
                "base_offset": header[0],
                "leader_epoch": header[2],
                "magic": header[3],
                "attributes": header[5],
                "last_offset_delta": header[6],
                "base_timestamp": header[7],
                "max_timestamp": header[8],
                "producer_id": header[9],
                "producer_epoch": header[10],
                "base_sequence": header[11],
                "record_count": header[12],
                "records": hashlib.sha256(records[position + _BATCH.size : stop]).hexdigest()[:12],
            }
        )
        position = stop
    return found


def differences(one: Plain, other: Plain, path: str = "") -> dict[str, tuple[Plain, Plain]]:
    """Return where two comparable values differ, with both values. What only one has is None in the other."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        pairs = [(f"{path}.{key}" if path else str(key), one.get(key), other.get(key)) for key in keys]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{index}]", *pair) for index, pair in enumerate(zip(one, other, strict=True))]
    else:
        return {} if one == other else {path: (one, other)}
    return {
        where: both for name, left, right in pairs for where, both in differences(left, right, name).items()
    }
