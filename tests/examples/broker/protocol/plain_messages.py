"""Messages as plain values: requests are made from them, and answers are compared as them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar, cast
from uuid import UUID

from examples.broker.protocol.conversion import converter, shape_of

EntityT = TypeVar("EntityT")
Plain = Any
"""Numbers, text, bytes and None, and lists and dictionaries of them."""


@dataclass(frozen=True)
class _Nothing:
    """A message without fields."""


def message(entity_type: type[EntityT], values: Mapping[str, Plain]) -> EntityT:
    """Return a kio entity with these values. A field that is not given has its default, or is empty or 0."""
    entity: Any = entity_type
    shapes = {field.name: shape_of(field) for field in fields(entity)}
    given = {
        name: tuple(_value(shapes[name].type, entry) for entry in value)
        if shapes[name].is_array and value is not None
        else _value(shapes[name].type, value)
        for name, value in values.items()
    }
    absent = converter(_Nothing, entity)(_Nothing())
    return entity_type(**{name: given.get(name, getattr(absent, name)) for name in shapes})


def _value(kind: Any, value: Plain) -> Any:
    if is_dataclass(kind):
        return value if value is None or is_dataclass(value) else message(cast(Any, kind), value)
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
