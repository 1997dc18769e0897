"""Read some columns of people with msgspec, which skips all other values without building them.

The columns have the same types and values as in `pages`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.reading.fast_reader import (
    PEOPLE_COLUMNS,
    PeoplePage,
    check_exact,
    parse_head,
    to_one_line,
)
from outreach_frames.reading.lenient_reader import parse_dates
from outreach_frames.tables.json_values import LossyParseError
from outreach_frames.tables.schema import wire_type

_PATHS: Final = {"_".join(path): path for path, _ in spec.leaves(spec.PERSON)}
_SCALARS: Final = {"string": str, "integer": int, "number": float, "boolean": bool}


def read_columns(
    bodies: Sequence[bytes], columns: Sequence[str], *, must_be_documented: bool = False
) -> PeoplePage:
    """Read only these documented columns; raise ValueError if only `pages` can read them.

    With `must_be_documented`, undocumented fields and wrong types also raise ValueError.

    >>> body = b'{"results": [{"id": "1", "name": "Ada"}], "_pagination": {}}'
    >>> read_columns([body], ["name"]).people.to_pylist()
    [{'name': 'Ada'}]
    """
    decoder = _decoder(frozenset(columns), must_be_documented)
    values: dict[str, list[Any]] = {name: [] for name in columns}
    heads = []
    try:
        for body in bodies:
            page = decoder.decode(to_one_line(body))
            head = parse_head(len(page.results), bytes(page.pagination), bytes(page.errors))
            heads.append(head._replace(body=body))
            _add_values(page.results, values)
        people = pa.table({name: _column(values.pop(name), name) for name in columns})
    except (OverflowError, RecursionError) as error:
        raise LossyParseError from error
    check_exact(people)
    return PeoplePage(people, heads)


def _add_values(people: list[Any], values: Mapping[str, list[Any]]) -> None:
    """Append each person's values to the lists of the columns."""
    found: dict[tuple[str, ...], list[Any]] = {(): people}
    for name in values:
        for depth, member in enumerate(_PATHS[name]):
            parents, path = _PATHS[name][:depth], _PATHS[name][: depth + 1]
            if path not in found:
                found[path] = [getattr(parent, member, None) for parent in found[parents]]
        values[name] += found[_PATHS[name]]


def _column(values: list[Any], name: str) -> pa.Array:
    field = PEOPLE_COLUMNS[name]
    column = pa.array(msgspec.to_builtins(values) if field.members else values, wire_type(field))
    if field.format not in ("date", "date-time"):
        return column
    dates, raw = parse_dates(column, field)
    if raw is not None:
        raise LossyParseError
    return dates


@lru_cache
def _decoder(columns: frozenset[str], must_be_documented: bool) -> msgspec.json.Decoder[Any]:
    """Return a decoder of responses that rejects values of the wrong type in these columns."""
    people = _object_type(spec.PERSON, columns, must_be_documented)
    page = msgspec.defstruct(
        "Page",
        [
            (spec.RESULTS_KEY, list[people | None]),  # type: ignore[valid-type]
            ("pagination", msgspec.Raw),
            ("errors", msgspec.Raw, msgspec.Raw(b"null")),
        ],
        rename={"pagination": spec.PAGINATION_KEY, "errors": spec.ERRORS_KEY},
    )
    return msgspec.json.Decoder(page)


def _object_type(
    fields: Sequence[spec.Field],
    columns: Collection[str],
    must_be_documented: bool,
    prefix: str = "",
) -> Any:
    """Return the msgspec type of an object, or None if no field is needed."""
    members = []
    for field in fields:
        name = prefix + field.name
        if field.type == "object" and field.members:
            kind = _object_type(field.members, columns, must_be_documented, f"{name}_")
        elif name in columns:
            kind = _value_type(field)
        else:
            kind = _SCALARS.get(field.type, msgspec.Raw) if must_be_documented else None
        if kind is not None:
            members.append((field.name, kind if kind is msgspec.Raw else kind | None, None))
    if not members:
        return None
    return msgspec.defstruct("Object", members, forbid_unknown_fields=must_be_documented, gc=False)


def _value_type(field: spec.Field) -> Any:
    if field.type != "array":
        return _SCALARS[field.type]
    if field.members:
        # Reject undocumented members, which would change the column's type.
        element = _object_type(field.members, spec.columns(field.members), must_be_documented=True)
    else:
        element = _SCALARS[field.items or "string"]
    return list[element | None]  # type: ignore[valid-type]
