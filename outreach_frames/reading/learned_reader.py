"""Read pages of people with undocumented fields that an earlier page had.

A strict msgspec decoder checks that a page has only documented and learned fields. It builds
chosen columns; Arrow reads the columns of whole pages. A second decoder returns only the learned
fields, which the lenient reader appends. All results equal those of the lenient reader alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypedDict

import msgspec
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.reading.fast_reader import (
    PEOPLE_COLUMNS,
    PageHead,
    Path,
    PeoplePage,
    check_exact,
    convert_dates,
    page_head,
    read_except,
    to_one_line,
)
from outreach_frames.reading.flatten import concat_people
from outreach_frames.reading.lenient_reader import records_table
from outreach_frames.tables.json_values import LossyParseError, parse_json
from outreach_frames.tables.schema import wire_type

_PATHS: Final = {"_".join(path): path for path, _ in spec.leaves(spec.PERSON)}
_DATES: Final = [name for name, field in PEOPLE_COLUMNS.items() if field.format == "date"]
_SCALARS: Final = {"string": str, "integer": int, "number": float, "boolean": bool}
_RESPONSE_NAMES: Final = frozenset(field.name for field in spec.PEOPLE_SEARCH_RESULT)
# msgspec rejects other names or skips them without an error.
_LEARNABLE: Final = re.compile(r"[ !#-\[\]-~]{1,100}")
_CACHED_DECODERS: Final = 16


def unread_paths(response: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the paths of a parsed response's fields that Arrow cannot read.

    These are undocumented fields, and documented ones with values of other types. The empty path
    means that the response has undocumented fields beside the people.

    >>> [*unread_paths({"results": [{"zz": 1, "company": {"founded_year": "1999"}}], "took": 3})]
    [(), ('zz',), ('company', 'founded_year')]
    """
    if not response.keys() <= _RESPONSE_NAMES:
        yield ()
    people = [person for person in response[spec.RESULTS_KEY] if isinstance(person, dict)]
    yield from _unread(people, spec.PERSON)


def _unread(
    objects: Sequence[Mapping[str, Any]], fields: Sequence[spec.Field], path: Path = ()
) -> Iterator[Path]:
    """Yield the paths of undocumented fields and of fields with values of other types."""
    names = {name for each in objects for name in each}
    undocumented = names.difference(field.name for field in fields)
    yield from ((*path, name) for name in undocumented if _LEARNABLE.fullmatch(name))
    for field in fields:
        place = (*path, field.name)
        values = [each[field.name] for each in objects if each.get(field.name) is not None]
        if field.type == "object" and field.members:
            inner = [value for value in values if isinstance(value, dict)]
            yield from _unread(inner, field.members, place)
        else:
            try:
                msgspec.convert(values, list[_value_type(field)])  # type: ignore[misc]
            except msgspec.ValidationError:
                yield place


def read_learned(
    bodies: Sequence[bytes],
    learned: frozenset[Path],
    columns: Sequence[str] | None = None,
) -> tuple[list[PeoplePage], bool]:
    """Read bodies, as one page if they have the same columns; return whether any field is learned.

    Raise ValueError or ArrowTypeError for fields not learned. `columns` limits the documented
    columns that are read.

    >>> body = b'{"results": [{"id": "1", "name": "Ada"}], "_pagination": {}}'
    >>> (page,), has_learned = read_learned([body], frozenset(), ["name"])
    >>> page.people.to_pylist(), has_learned
    ([{'name': 'Ada'}], False)
    """
    lines = [to_one_line(body) for body in bodies]
    try:
        heads, values = _check(lines, learned, columns)
        if columns is None:
            people = read_except(lines, learned)
        else:
            heads = [head._replace(body=body) for head, body in zip(heads, bodies, strict=True)]
            people = pa.table({name: _column(values.pop(name), name) for name in list(values)})
        check_exact(people)
        if learned <= {()}:
            page = PeoplePage(concat_people([convert_dates(people)]), heads)
            return [page], bool(learned)
        decoder = _learned_decoder(learned)
        responses = [decoder.decode(line) for line in lines]
        tables = _learned_tables(people, responses, learned)
    except (OverflowError, RecursionError) as error:
        raise LossyParseError from error
    documented = PEOPLE_COLUMNS if columns is None else columns
    if all(table.schema.equals(tables[0].schema) for table in tables):
        pages = [PeoplePage(_append(people, pa.concat_tables(tables), documented), heads)]
    else:
        pages = [
            PeoplePage(_append(page.people, table, documented), page.heads)
            for page, table in zip(PeoplePage(people, heads).split(), tables, strict=True)
        ]
    has_learned = any(True for response in responses for _ in unread_paths(response))
    return pages, has_learned or () in learned


def _check(
    lines: Sequence[bytes], learned: frozenset[Path], columns: Sequence[str] | None
) -> tuple[list[PageHead], dict[str, list[Any]]]:
    """Return the heads of pages without unknown fields, and the values of the columns."""
    decoder = _strict_decoder(frozenset(PEOPLE_COLUMNS if columns is None else columns), learned)
    values: dict[str, list[Any]] = {
        name: [] for name in columns or () if _PATHS[name] not in learned
    }
    heads = []
    for line in lines:
        people, *further = msgspec.structs.astuple(decoder.decode(line))
        heads.append(page_head(len(people), *(parse_json(bytes(raw).decode()) for raw in further)))
        found: dict[Path, list[Any]] = {(): people}
        for name in values:
            for depth, member in enumerate(_PATHS[name]):
                parents, path = _PATHS[name][:depth], _PATHS[name][: depth + 1]
                if path not in found:
                    found[path] = [getattr(parent, member, None) for parent in found[parents]]
            values[name] += found[_PATHS[name]]
    return heads, values


def _column(values: list[Any], name: str) -> pa.Array:
    field = PEOPLE_COLUMNS[name]
    return pa.array(msgspec.to_builtins(values) if field.members else values, wire_type(field))


def _learned_tables(
    people: pa.Table, responses: Sequence[Mapping[str, Any]], learned: frozenset[Path]
) -> list[pa.Table]:
    """Return the learned fields and the dates of each response."""
    parsed = dict.fromkeys(name for name, path in _PATHS.items() if path not in learned)
    dates = people.select([name for name in _DATES if name in people.column_names])
    tables = []
    begin = 0
    for response in responses:
        records = response[spec.RESULTS_KEY]
        part = dates.slice(begin, len(records))
        texts = dict(zip(part.column_names, part.columns, strict=True))
        table = records_table(records, spec.PERSON, parsed=parsed | texts)
        tables.append(concat_people([table]))
        begin += len(records)
    return tables


def _append(people: pa.Table, learned: pa.Table, documented: Iterable[str]) -> pa.Table:
    """Replace documented columns by learned ones, and append undocumented columns."""
    columns = dict(zip(people.column_names, people.columns, strict=True))
    columns |= zip(learned.column_names, learned.columns, strict=True)
    names = [*documented, *(name for name in learned.column_names if name not in PEOPLE_COLUMNS)]
    return pa.table({name: columns[name] for name in names})


@lru_cache(_CACHED_DECODERS)
def _strict_decoder(columns: frozenset[str], learned: frozenset[Path]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of pages that rejects unknown fields and values of the wrong type."""
    person = _strict_type(spec.PERSON, columns, learned)
    page = msgspec.defstruct(
        "Page",
        [
            (spec.RESULTS_KEY, list[person | None]),  # type: ignore[valid-type]
            (spec.PAGINATION_KEY, msgspec.Raw),
            (spec.ERRORS_KEY, msgspec.Raw, msgspec.Raw(b"null")),
        ],
    )
    return msgspec.json.Decoder(page)


def _strict_type(
    fields: Sequence[spec.Field],
    columns: Collection[str],
    learned: Collection[Path] = (),
    path: Path = (),
) -> Any:
    """Return the msgspec type of an object that may have documented and learned fields."""
    members: list[tuple[str, Any, Any]] = []
    for field in fields:
        place = (*path, field.name)
        # Typed scalars are decoded faster than raw JSON.
        kind: Any = _SCALARS.get(field.type, msgspec.Raw)
        if place in learned:
            kind = msgspec.Raw
        elif field.type == "object" and field.members:
            kind = _strict_type(field.members, columns, learned, place)
        elif "_".join(place) in columns:
            kind = _value_type(field)
        members.append((field.name, kind if kind is msgspec.Raw else kind | None, None))
    documented = {field.name for field in fields}
    # A learned name need not be a valid name of an attribute.
    renamed = {
        f"learned_{number}": place[-1]
        for number, place in enumerate(learned)
        if place and place[:-1] == path and place[-1] not in documented
    }
    members += [(name, msgspec.Raw, None) for name in renamed]
    return msgspec.defstruct(
        "Object", members, rename=renamed, forbid_unknown_fields=True, gc=False
    )


def _value_type(field: spec.Field) -> Any:
    if field.type != "array":
        return _SCALARS[field.type]
    if field.members:
        element = _strict_type(field.members, spec.columns(field.members))
    else:
        element = _SCALARS[field.items or "string"]
    return list[element | None]  # type: ignore[valid-type]


@lru_cache(_CACHED_DECODERS)
def _learned_decoder(learned: frozenset[Path]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of pages that returns dicts with only the learned fields."""
    people = {spec.RESULTS_KEY: list[_learned_type(learned - {()}) | None]}  # type: ignore[misc]
    return msgspec.json.Decoder(_typed_dict(people))


def _learned_type(paths: Iterable[Path]) -> Any:
    """Return the type of an object with members at the ends of these paths."""
    members: dict[str, list[Path]] = {}
    for name, *rest in paths:
        members.setdefault(name, []).append(tuple(rest))
    return _typed_dict(
        {name: Any if () in ends else _learned_type(ends) | None for name, ends in members.items()}
    )


def _typed_dict(members: Mapping[str, Any]) -> Any:
    create: Any = TypedDict
    return create("Object", members, total=False)
