"""Requests and responses of any version as bytes, and test values for their fields."""

import io
from dataclasses import Field, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from examples.broker.protocol.apis import APIS, Api
from examples.broker.protocol.conversion import FieldShape, shape_of
from examples.broker.protocol.versions import response_class

SERVED = [(api, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)]


def named(value: Any) -> str:
    return value.name if isinstance(value, Api) else str(value)


def filled(entity_type: Any) -> Any:
    """Return an entity with two elements in each array, and another value than the default in each field."""
    numbers = count(1)

    def value(shape: FieldShape) -> Any:
        if shape.is_entity:
            return shape.type(**{field.name: of(field) for field in fields(shape.type)})
        return _value(shape.type, next(numbers))

    def of(field: Field[Any]) -> Any:
        shape = shape_of(field)
        return (value(shape), value(shape)) if shape.is_array else value(shape)

    return value(FieldShape(entity_type, is_array=False, is_nullable=False))


def emptied(entity: Any) -> Any:
    """Return the entity with empty arrays, and null in each nullable field."""
    spared = {}
    for field in fields(entity):
        shape = shape_of(field)
        if shape.is_nullable or shape.is_array:
            spared[field.name] = None if shape.is_nullable else ()
    return replace(entity, **spared)


def _value(primitive: Any, number: int) -> Any:
    if primitive is bool:
        return True
    if primitive is ErrorCode:
        return ErrorCode.corrupt_message
    if issubclass(primitive, int):
        return number % 100 + 1
    if issubclass(primitive, timedelta):
        return timedelta(milliseconds=number)
    if issubclass(primitive, datetime):
        return datetime.fromtimestamp(number, UTC)
    if primitive is UUID:
        return UUID(int=number)
    return f"text {number}" if issubclass(primitive, str) else b"bytes %d" % number


def request_frame(request: Any, *, correlation_id: int = 7, client_id: str | None = "client") -> bytes:
    """Return the bytes that a client of this version sends, without the length prefix."""
    header_type = request.__header_schema__
    buffer = io.BytesIO()
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    return buffer.getvalue()


def with_size(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def read_response(api: Api, version: int, data: bytes) -> tuple[int, Any]:
    """Return the correlation id and the response, as a client of this version reads them."""
    assert len(data) == 4 + int.from_bytes(data[:4], "big")
    response_type = response_class(api, version)
    header, header_size = entity_reader(response_type.__header_schema__)(data, 4)
    response, size = entity_reader(response_type)(data, 4 + header_size)
    assert 4 + header_size + size == len(data)
    return header.correlation_id, response


def agree(one: Any, other: Any) -> bool:
    """Return whether two entities are equal in all common fields, where null equals an empty string."""
    if is_dataclass(one) and is_dataclass(other):
        names = {field.name for field in fields(one)} & {field.name for field in fields(other)}
        return all(agree(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(agree, one, other))
    return bool(one == other) or {one, other} == {None, ""}
