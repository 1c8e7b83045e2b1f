"""The rules of strictness that msgspec's conversion does not have, as walks over its types.

Not a validator: the walks pass over what does not fit, because the conversion says so itself.

1. JSON Schema calls 5.0 an integer, and JavaScript writes 5 and 5.0 alike; msgspec refuses 5.0
   for an `int`. `whole_floats` makes it 5 where only an integer fits, and never the other way.
2. A dataclass, a TypedDict and an open Struct drop members they do not know in silence, so that
   a misspelt filter would filter nothing. `unknown_members` finds them.
3. In a pattern JSON Schema's `$` matches at the end alone, Python's also in front of a newline
   there, which would let a header or a command have one line more. `overlooked_newlines` finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import inspect as types

__all__ = ["overlooked_newlines", "unknown_members", "whole_floats"]

Path: TypeAlias = tuple[str | int, ...]
_Object: TypeAlias = types.StructType | types.DataclassType | types.TypedDictType

_INT64: Final = 2**63
# What may hold a `$` that means a dollar (an escape, a set), or the `$` that means an end.
_DOLLAR: Final = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$"


def whole_floats(value: object, shape: types.Type) -> object:
    """Copy a JSON value, with whole numbers such as 5.0 as integers where `shape` needs one."""
    if type(value) is float:
        return _whole(value, shape)
    if isinstance(value, dict):
        members = _members(value, shape)
        return {
            name: item if (inner := members(name)) is None else whole_floats(item, inner)
            for name, item in value.items()
        }
    if isinstance(value, list):
        shapes = _items(value, shape)
        return [
            item if (inner := shapes.get(index)) is None else whole_floats(item, inner)
            for index, item in enumerate(value)
        ]
    return value


def unknown_members(value: object, shape: types.Type, path: Path = ()) -> Iterator[Path]:
    """Yield where `value`, which fits, has a member that an object in `shape` does not know."""
    if isinstance(value, dict):
        members = _members(value, shape)
        for name, item in value.items():
            inner = members(name)
            if inner is None:
                if members.closed:
                    yield (*path, name)
            else:
                yield from unknown_members(item, inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in _items(value, shape).items():
            yield from unknown_members(value[index], inner, (*path, index))


def overlooked_newlines(value: object, shape: types.Type, path: Path = ()) -> Iterator[Path]:
    """Yield where a text in `value`, which fits, ends with a newline that its pattern has not."""
    if isinstance(value, str):
        if value.endswith("\n") and not _strictly_fits(value, shape):
            yield path
    elif isinstance(value, dict):
        members = _members(value, shape)
        for name, item in value.items():
            if (inner := members(name)) is not None:
                yield from overlooked_newlines(item, inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in _items(value, shape).items():
            yield from overlooked_newlines(value[index], inner, (*path, index))


def _strictly_fits(value: str, shape: types.Type) -> bool:
    # A union holds one kind of text at most.
    for inner in _alternatives(shape):
        if isinstance(inner, types.StrType) and inner.pattern is not None:
            return re.search(_ended(inner.pattern), value) is not None
    return True


@lru_cache(maxsize=256)
def _ended(pattern: str) -> str:
    return re.sub(_DOLLAR, lambda part: r"\Z" if part[0] == "$" else part[0], pattern, flags=re.S)


class _Members:
    """The shape of each member of one object; called with a name."""

    __slots__ = ("closed", "known", "other")

    def __init__(
        self, known: Mapping[object, types.Type], other: types.Type | None, *, closed: bool
    ) -> None:
        self.known = known
        self.other = other
        self.closed = closed

    def __call__(self, name: object) -> types.Type | None:
        return self.known.get(name, self.other)


_ANYTHING: Final = _Members({}, None, closed=False)


def _alternatives(shape: types.Type) -> Iterator[types.Type]:
    if isinstance(shape, types.Metadata):
        yield from _alternatives(shape.type)
    elif isinstance(shape, types.UnionType):
        for inner in shape.types:
            yield from _alternatives(inner)
    else:
        yield shape


def _whole(value: float, shape: types.Type) -> int | float:
    alternatives = list(_alternatives(shape))
    if any(isinstance(inner, types.FloatType | types.AnyType) for inner in alternatives):
        return value
    # Beyond 64 bits the message itself would have been refused, had it been written as an int.
    if value.is_integer() and -_INT64 <= value < _INT64 and any(map(_takes_int, alternatives)):
        return int(value)
    return value


def _takes_int(shape: types.Type) -> bool:
    if isinstance(shape, types.LiteralType):
        return any(type(value) is int for value in shape.values)
    if isinstance(shape, types.EnumType):
        return any(type(member.value) is int for member in list(shape.cls))
    return isinstance(shape, types.IntType)


def _members(value: dict[object, object], shape: types.Type) -> _Members:
    # A union holds one kind of object at most, or Structs that are told apart by their tag.
    for inner in _alternatives(shape):
        if isinstance(inner, types.DictType):
            return _Members({}, inner.value_type, closed=False)
        if isinstance(inner, types.StructType):
            if inner.array_like or (inner.tag_field and value.get(inner.tag_field) != inner.tag):
                continue
            known = _known(inner)
            if inner.tag_field is not None:
                known[inner.tag_field] = types.AnyType()
            return _Members(known, None, closed=True)
        if isinstance(inner, types.DataclassType | types.TypedDictType):
            return _Members(_known(inner), None, closed=True)
    return _ANYTHING


def _known(shape: _Object) -> dict[object, types.Type]:
    return {field.encode_name: field.type for field in shape.fields}


def _items(value: list[object], shape: types.Type) -> dict[int, types.Type]:
    """Return the shape of each item that has one, by its index."""
    for inner in _alternatives(shape):
        if isinstance(inner, types.CollectionType):
            return dict.fromkeys(range(len(value)), inner.item_type)
        known: list[types.Type] = []
        if isinstance(inner, types.TupleType):
            known = list(inner.item_types)
        elif isinstance(inner, types.NamedTupleType):
            known = [field.type for field in inner.fields]
        elif isinstance(inner, types.StructType) and inner.array_like:
            # The tag is the first item, where there is one.
            if inner.tag_field is not None and value[:1] != [inner.tag]:
                continue
            known = [types.AnyType()] * (inner.tag_field is not None)
            known += [field.type for field in inner.fields]
        if known:
            return dict(enumerate(known[: len(value)]))
    return {}
