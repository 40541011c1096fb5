"""A check of the lengths in a request before kio parses it.

kio 0.6.5 reserves memory for as many elements as the length of an array claims, before it has read one of
them: a request of ten bytes that claims 2**32 elements ends the process. So this module compares each length
with the bytes that follow.

A compact string may be no longer than other strings, as in Kafka: a group's name, for example, is also sent
to clients with older versions.
"""

import math
from collections.abc import Callable
from dataclasses import Field, fields
from functools import cache
from struct import Struct
from typing import Any

from examples.broker.protocol.conversion import shape_of

# Takes the position of a value in a frame, and returns the position of the next value.
Skip = Callable[[bytes, int], int]

_NUMBER_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "timedelta_i32": 4,
    "timedelta_i64": 8,
    "uuid": 16,
}
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_LONGEST_VARINT = 5
_LONGEST_TEXT = 2**15 - 1


@cache
def array_length_check(entity: Any) -> Skip:
    """Return a function that passes through an ``entity``, and raises ValueError for too large a length.

    It raises IndexError or struct.error when the frame ends too early. It costs one call for each field.
    """
    flexible: bool = entity.__flexible__
    untagged = [_skip_field(field, flexible) for field in fields(entity) if "tag" not in field.metadata]
    tagged = {
        field.metadata["tag"]: _skip_field(field, flexible)
        for field in fields(entity)
        if "tag" in field.metadata
    }
    steps = [*untagged, _skip_tagged(tagged)] if flexible else untagged

    def skip_entity(frame: bytes, position: int) -> int:
        for step in steps:
            position = step(frame, position)
        return position

    return skip_entity


def _skip_field(field: Field[Any], flexible: bool) -> Skip:
    shape = shape_of(field)
    skip = array_length_check(shape.type) if shape.is_entity else _skip_primitive(field, flexible)
    if shape.is_array:
        return _skip_array(skip, flexible)
    if shape.is_entity and shape.is_nullable:
        # The byte before an entity says whether there is one.
        return lambda frame, position: position + 1 if frame[position] > 127 else skip(frame, position + 1)
    return skip


def _skip_primitive(field: Field[Any], flexible: bool) -> Skip:
    kafka_type = field.metadata["kafka_type"]
    if size := _NUMBER_SIZES.get(kafka_type):
        return lambda _, position: position + size
    is_text = kafka_type == "string"
    if flexible:
        return _skip_compact(_LONGEST_TEXT if is_text else math.inf)
    return _skip_sized(_INT16 if is_text else _INT32)


def _skip_sized(number: Struct) -> Skip:
    def skip(frame: bytes, position: int) -> int:
        size: int = number.unpack_from(frame, position)[0]
        return position + number.size + max(size, 0)

    return skip


def _skip_compact(longest: float) -> Skip:
    def skip(frame: bytes, position: int) -> int:
        size, position = _read_varint(frame, position)
        if size - 1 > longest:
            raise ValueError(f"a string of {size - 1} bytes, longer than {longest}")
        return position + max(size - 1, 0)

    return skip


def _skip_array(skip_element: Skip, flexible: bool) -> Skip:
    def skip_array(frame: bytes, position: int) -> int:
        if flexible:
            length, position = _read_varint(frame, position)
            length -= 1
        else:
            (length,) = _INT32.unpack_from(frame, position)
            position += 4
        # An element has at least one byte.
        if length > len(frame) - position:
            raise ValueError(f"an array of {length} elements in {len(frame) - position} bytes")
        for _ in range(length):
            position = skip_element(frame, position)
        return position

    return skip_array


def _skip_tagged(known: dict[int, Skip]) -> Skip:
    """Return a function that passes the tagged fields.

    A field that kio knows must end where its size says.
    """

    def skip_tagged(frame: bytes, position: int) -> int:
        count, position = _read_varint(frame, position)
        for _ in range(count):
            tag, position = _read_varint(frame, position)
            size, position = _read_varint(frame, position)
            if tag in known and known[tag](frame, position) != position + size:
                raise ValueError(f"a tagged field does not have the {size} bytes of its size")
            position += size
        return position

    return skip_tagged


def _read_varint(frame: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"a number of more than {_LONGEST_VARINT} bytes")
