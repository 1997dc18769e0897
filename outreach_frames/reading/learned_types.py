"""The types of a response's fields: as documented, or as the service was found to send them.

The untyped reader finds the types of undocumented fields, and of documented fields that always have
values of another type. Arrow's reader then reads later pages with these types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.reading.untyped_reader import FURTHER_FIELDS, RAW_SUFFIX, Path, sort_members
from outreach_frames.tables.schema import wire_struct, wire_type

PEOPLE_COLUMNS: Final = spec.columns(spec.PERSON)
_PERSON_PATHS: Final = [path for path, _ in spec.leaves(spec.PERSON)]
_OBJECTS: Final = {path[:end] for path in _PERSON_PATHS for end in range(1, len(path))}
_ERRORS: Final = pa.field(spec.ERRORS_KEY, pa.list_(pa.null()))
_MAX_LEARNED: Final = 300
# Names without characters that JSON escapes.
_LEARNABLE: Final = re.compile(r"[ !#-\[\]-~]{1,100}")

# The type of a response of people search if it has exactly the documented fields.
DOCUMENTED: Final = pa.struct(
    [
        _ERRORS if field.name == spec.ERRORS_KEY else field
        for field in wire_struct(spec.PEOPLE_SEARCH_RESULT)
    ]
)


# Types of fields by path.
Types = Mapping[Path, pa.DataType]


@dataclass(frozen=True)
class Layout:
    """How Arrow reads pages, and what these may have beyond the documented fields."""

    response: pa.StructType
    options: arrow_json.ParseOptions
    columns: Sequence[str]  # of people, in Arrow's order
    depth: int  # of the objects in a person
    learned: Mapping[str, Path]  # columns of other types than the documented ones
    objects: Sequence[Path]  # undocumented objects of a person
    uses: Mapping[str, int]  # number of fields with each name


def lay_out(response: pa.StructType) -> Layout:
    """Return the layout for responses of this type.

    >>> lay_out(DOCUMENTED).columns[:3]
    ['id', 'object', 'name']
    """
    person = _arrange(_person(response))
    schema = pa.schema(list(_replace(response, person)))
    leaves = {"_".join(path): (path, kind) for path, kind in _leaves(person)}
    return Layout(
        response,
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        list(leaves),
        max(map(len, _objects(person)), default=0),
        {
            name: path
            for name, (path, kind) in leaves.items()
            if name not in PEOPLE_COLUMNS or kind != wire_type(PEOPLE_COLUMNS[name])
        },
        [path for path in _objects(person) if path not in _OBJECTS],
        Counter(_names(response)),
    )


def learn(response: pa.StructType, of_people: Types, others: Types) -> pa.StructType:
    """Add the types of a page's fields to a response's type, except types that cannot be used.

    >>> response = learn(DOCUMENTED, {("zz",): pa.int64()}, {})
    >>> learn(response, {("zz",): pa.null()}, {}) == response
    True
    """
    if len(of_people) + len(others) > len(_PERSON_PATHS) + 2 * _MAX_LEARNED:
        return response
    found = _replace(_object(others), _object(of_people))
    for learned in (_merge(response, found), _merge(DOCUMENTED, found)):
        columns = ["_".join(path) for path, _ in _leaves(_person(learned))]
        is_usable = len({*columns}) == len(columns) and FURTHER_FIELDS not in columns
        most = DOCUMENTED.num_fields + len(PEOPLE_COLUMNS) + _MAX_LEARNED
        if is_usable and learned.num_fields + len(columns) <= most:
            return learned
    return DOCUMENTED


def _merge(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Merge types: the new type replaces the old one, unless it is of nulls only."""
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(_merge(old.value_type, new.value_type))
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        members = {member.name: member.type for member in old}
        for member in new:
            members[member.name] = _merge(members.get(member.name, member.type), member.type)
        return pa.struct(list(members.items()))
    return old if new in (pa.null(), pa.struct([])) else new


def _object(types: Types) -> pa.StructType:
    """Return the type of an object with these members, except members with unusual names."""
    members: dict[str, Any] = {}
    for path, kind in types.items():
        if all(map(_LEARNABLE.fullmatch, path)) and not path[-1].endswith(RAW_SUFFIX):
            place = members
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = kind

    def build(members: Mapping[str, Any]) -> pa.StructType:
        return pa.struct(
            [
                (name, build(kind) if isinstance(kind, dict) else kind)
                for name, kind in members.items()
            ]
        )

    return build(members)


def _person(response: pa.StructType) -> pa.StructType:
    return response.field(spec.RESULTS_KEY).type.value_type


def _replace(response: pa.StructType, person: pa.StructType) -> pa.StructType:
    """Return a response's type with another type of its people."""
    members = {member.name: member.type for member in response}
    return pa.struct(list((members | {spec.RESULTS_KEY: pa.list_(person)}).items()))


def _arrange(person: pa.StructType, path: Path = ()) -> pa.StructType:
    """Sort the further members of listed objects."""
    members = []
    for member in person:
        place = (*path, member.name)
        if pa.types.is_struct(member.type):
            kind = _arrange(member.type, place)
        else:
            field = PEOPLE_COLUMNS.get("_".join(place))
            kind = sort_members(member.type, [one.name for one in field.members] if field else [])
        members.append((member.name, kind))
    return pa.struct(members)


def _leaves(person: pa.StructType, path: Path = ()) -> Iterator[tuple[Path, pa.DataType]]:
    """Yield the path and type of each field that becomes a column, in order."""
    for member in person:
        if pa.types.is_struct(member.type):
            yield from _leaves(member.type, (*path, member.name))
        else:
            yield (*path, member.name), member.type


def _objects(person: pa.StructType, path: Path = ()) -> Iterator[Path]:
    for member in person:
        if pa.types.is_struct(member.type):
            yield (*path, member.name)
            yield from _objects(member.type, (*path, member.name))


def _names(kind: pa.DataType) -> Iterator[str]:
    """Yield the names of all members, at all levels."""
    if pa.types.is_list(kind):
        yield from _names(kind.value_type)
    elif pa.types.is_struct(kind):
        for member in kind:
            yield member.name
            yield from _names(member.type)
