"""The types of the fields of kio's classes. Their annotations are types, not strings."""

from dataclasses import Field, dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin


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
