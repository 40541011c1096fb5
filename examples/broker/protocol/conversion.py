"""Conversion of a message between two versions of an API, field by field."""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

# False comes before 0, since bool is a subclass of int.
_ZEROES = (False, 0, "", b"", timedelta(0))


@dataclass(frozen=True, slots=True)
class FieldShape:
    """A field's type without ``| None`` and ``tuple[..., ...]``, and whether the annotation has these."""

    type: Any
    is_array: bool
    is_nullable: bool

    @property
    def is_entity(self) -> bool:
        """Whether the type has fields of its own."""
        return is_dataclass(self.type)


def shape_of(field: Field[Any]) -> FieldShape:
    """Return the shape of a field of kio's classes. Their annotations are types, not strings."""
    annotation, is_nullable = _without_none(field.type)
    if get_origin(annotation) is not tuple:
        return FieldShape(annotation, False, is_nullable)
    element, _ = get_args(annotation)
    return FieldShape(element, True, is_nullable)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) is not UnionType:
        return annotation, False
    (rest,) = (member for member in get_args(annotation) if member is not NoneType)
    return rest, True


@cache
def converter(source: type, target: type) -> Callable[[Any], Any]:
    """Return a function from a ``source`` entity to a ``target`` one; for equal classes, the identity.

    A field that the target does not have is dropped. A field that the source does not have, or has as null
    where the target allows no null, has the target's default. Without a default it is null, empty or zero, as
    in Kafka's schemas.
    """
    if source is target:
        return lambda entity: entity
    source_fields = {field.name: field for field in fields(source)}
    absent = {}
    shared = []
    converted = []
    for field in fields(target):
        counterpart = source_fields.get(field.name)
        if counterpart is None:
            absent[field.name] = _default(field)
        elif convert := _field_converter(counterpart, field):
            converted.append((field.name, convert))
        else:
            shared.append(field.name)

    def convert_entity(entity: Any) -> Any:
        values = absent.copy()
        for name in shared:
            values[name] = getattr(entity, name)
        for name, convert in converted:
            values[name] = convert(getattr(entity, name))
        return target(**values)

    return convert_entity


def _field_converter(source: Field[Any], target: Field[Any]) -> Callable[[Any], Any] | None:
    """Return the conversion of a field's value; None if the value stays the same."""
    source_shape, target_shape = shape_of(source), shape_of(target)
    loses_null = source_shape.is_nullable and not target_shape.is_nullable
    null = _default(target) if loses_null else None
    if target_shape.is_entity:
        convert = converter(source_shape.type, target_shape.type)
        if target_shape.is_array:
            return lambda entities: null if entities is None else tuple(map(convert, entities))
        return lambda entity: null if entity is None else convert(entity)
    if loses_null:
        return lambda value: null if value is None else value
    return None


def _default(field: Field[Any]) -> Any:
    shape = shape_of(field)
    if field.default is not MISSING:
        return field.default
    if shape.is_nullable:
        return None
    if shape.is_array:
        return ()
    for zero in _ZEROES:
        if issubclass(shape.type, type(zero)):
            return zero
    raise TypeError(f"no default is known for {field.name}, a {shape.type}")
