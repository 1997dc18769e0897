"""Fields that the interface does not show, but that are of one type: Arrow's reader reads them too.

What Arrow does not tell, in which order fields first came and whether they came at all, the first
people of a response do, or it is in doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.tables.cut_fields import PEOPLE, SHOWN_PERSON, Path, first_people
from outreach_frames.tables.fast_reader import check_exact
from outreach_frames.tables.json_columns import with_elements
from outreach_frames.tables.json_values import LossyParseError
from outreach_frames.tables.plain_texts import plain_texts

_PAGINATION: Final = (spec.PAGINATION_KEY,)
_COLUMNS: Final = spec.columns(spec.PERSON)
# Lists whose elements the interface does not show.
_LISTS_OF_ANYTHING: Final = {
    (*PEOPLE, *path)
    for path, field in spec.leaves(spec.PERSON)
    if field.type == "array" and field.items is None
}
_SCALARS: Final = (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.null())
_PLAIN: Final = (pa.string(), pa.int64(), pa.bool_(), pa.null())
_MOST_PEOPLE: Final = 10


class DoubtError(Exception):
    """What a field is cannot be told from what Arrow read."""

    def __init__(self, paths: Iterable[Path]) -> None:
        super().__init__(paths)
        self.paths: frozenset[Path] = frozenset(paths)


def regular_types(
    documents: Sequence[Any], paths: Iterable[Path], known: Mapping[Path, pa.DataType]
) -> dict[Path, pa.DataType]:
    """Find the types of those fields that can be read by Arrow.

    Parameters
    ----------
    documents : sequence
        Parsed responses.
    paths : iterable of tuple of str
        Fields that are not as the interface shows.
    known : mapping of tuple of str to pyarrow.DataType
        The types of some of them on earlier pages.

    Returns
    -------
    dict of tuple of str to pyarrow.DataType
        With them the values that are in the documents can be read, and what could be read before.
    """
    types = dict(known)
    for path in paths:
        values = list(_values(documents, path))
        try:
            found = _type_of(values, path)
            if found is None and values:
                types.pop(path, None)
            elif found is not None:
                types[path] = _unified(types.get(path), found)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            types.pop(path, None)
    return types


class Plan(NamedTuple):
    """How to read responses whose unexpected fields are known.

    Attributes
    ----------
    cut : tuple of str
        The names of fields that are cut out.
    types : dict of tuple of str to pyarrow.DataType
        The fields that Arrow reads, by their paths.
    levels : dict of tuple of str to frozenset of str
        Of these the ones that become further columns, by the object that has them.
    """

    cut: tuple[str, ...]
    types: Mapping[Path, pa.DataType]
    levels: Mapping[Path, frozenset[str]]


def plan_of(paths: Iterable[Path], types: Mapping[Path, pa.DataType]) -> Plan:
    """Plan to cut out what Arrow does not read, and what could be mistaken for it.

    >>> plan_of([("results", "a"), ("results", "b")], {("results", "a"): pa.string()}).cut
    ('b',)
    """
    typed = dict(types)
    while True:
        cut = [path for path in paths if path not in typed]
        names = {path[-1] for path in cut}
        # Objects count too: by name, a further column must not be taken for one of them.
        columns = Counter(
            "_".join(node[1:]) for path, kind in typed.items() for node in _nodes(path, kind)
        )
        taken = [
            path
            for path, kind in typed.items()
            if names.intersection(_names(path, kind))
            or any(_is_taken("_".join(leaf[1:]), cut, columns) for leaf in _leaves(path, kind))
        ]
        if not taken:
            break
        for path in taken:
            del typed[path]
    levels: dict[Path, frozenset[str]] = {}
    for path, kind in typed.items():
        for *above, name in _leaves(path, kind):
            # An object is a member of what it is in, and has members of its own.
            for depth in range(len(path) - 1, len(above) + 1):
                level = tuple(above[:depth])
                levels[level] = levels.get(level, frozenset()) | {[*above, name][depth]}
    return Plan(tuple(sorted(names)), typed, levels)


def seeds_of(bodies: Sequence[bytes], plan: Plan) -> list[Any]:
    """Make the first people less their values: what further fields they have, in which order.

    Raises
    ------
    DoubtError
        When a field that Arrow reads is not among those of the first person that may have it.
    """
    if not plan.levels:
        return []
    people = next(
        filter(None, (list(islice(first_people(one), _MOST_PEOPLE)) for one in bodies)), []
    )
    doubtful = set()
    for level, names in plan.levels.items():
        first = next((one for one in (_at(person, level) for person in people) if one), None)
        if missing := names.difference(first or ()):
            doubtful |= {level, *((*level, name) for name in missing)}
    if doubtful:
        raise DoubtError(doubtful)
    return [_seed(person, SHOWN_PERSON) if person else {} for person in people]


def further_column(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Give a column the type that its values alone would have.

    Raises
    ------
    DoubtError
        When whole numbers may have been written with a fraction or not, or a list has no elements.
    """
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column))])
    values = column
    if pa.types.is_list(column.type):
        values = pc.list_flatten(column)
        if values.null_count == len(values):
            raise DoubtError([path])
    if pa.types.is_floating(values.type):
        check_exact(values)
        if pc.all(pc.equal(pc.floor(values), values), min_count=0).as_py():
            raise DoubtError([path])
    return column


def texts_of_lists(lists: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Write the elements of lists as text.

    Raises
    ------
    DoubtError
        When a number would be written in another way.
    """
    lists.validate()
    array = lists.combine_chunks()
    try:
        texts = with_elements(array, plain_texts)
    except LossyParseError as error:
        raise DoubtError([path]) from error
    return pa.chunked_array(
        [pa.ListArray.from_arrays(texts.offsets, texts.values, mask=array.is_null())]
    )


def _leaves(path: Path, kind: pa.DataType) -> Iterator[Path]:
    """Yield the further columns that a field becomes, if it does."""
    if path in _LISTS_OF_ANYTHING or path[:1] != PEOPLE:
        return
    if pa.types.is_struct(kind):
        for member in kind:
            yield from _leaves((*path, member.name), member.type)
    else:
        yield path


def _nodes(path: Path, kind: pa.DataType) -> Iterator[Path]:
    """Yield a field and all that is within it."""
    yield path
    if pa.types.is_struct(kind):
        for member in kind:
            yield from _nodes((*path, member.name), member.type)


def _names(path: Path, kind: pa.DataType) -> Iterator[str]:
    yield path[-1]
    if pa.types.is_list(kind):
        yield from _names(path, kind.value_type)
    elif pa.types.is_struct(kind):
        for member in kind:
            yield from _names((member.name,), member.type)


def _is_taken(column: str, cut: Iterable[Path], columns: Mapping[str, int]) -> bool:
    """Tell whether another field may become a column of that name."""
    prefixes = tuple("_".join(path[1:]) for path in cut)
    return (
        column in _COLUMNS
        or columns[column] > 1
        or column in prefixes
        or column.startswith(tuple(f"{prefix}_" for prefix in prefixes))
    )


def _at(person: Any, level: Path) -> Any:
    """Give an object of a person, if there is one; empty ones have no fields to look at."""
    for name in level[1:]:
        person = person.get(name) if type(person) is dict else None
    return person if type(person) is dict else None


def _seed(value: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    seed: dict[str, Any] = {}
    for name, member in value.items():
        field = shown.get(name)
        if field is None:
            seed[name] = _seed(member, {}) if type(member) is dict else None
        elif field.type == "object" and type(member) is dict:
            seed[name] = _seed(member, field.members)
    return seed


def _values(documents: Iterable[Any], path: Path) -> Iterator[Any]:
    """Yield what stands at a path, where it is there at all."""
    for document in documents:
        objects = document[spec.RESULTS_KEY] if path[:1] == PEOPLE else [document]
        for one in objects:
            value = one
            for name in path[1:] if path[:1] == PEOPLE else path:
                if type(value) is not dict or name not in value:
                    break
                value = value[name]
            else:
                yield value


def _type_of(values: Sequence[Any], path: Path) -> pa.DataType | None:
    """Give the type by which a field can be read, if there is one."""
    if path in _LISTS_OF_ANYTHING:
        if any(value is not None and type(value) is not list for value in values):
            return None
        elements = [element for value in values for element in value or ()]
        kind = pa.array(elements).type
        return pa.list_(kind) if pa.types.is_struct(kind) and _has_text(kind) else None
    kind = pa.array(values).type if values else None
    if kind is None:
        return None
    if path == _PAGINATION:
        is_plain = pa.types.is_struct(kind) and all(one.type in _PLAIN for one in kind)
        return kind if is_plain else None
    if path[:1] != PEOPLE or _is_shown(path):
        return None
    return kind if _is_regular(kind) else None


def _is_shown(path: Path) -> bool:
    members = SHOWN_PERSON
    for name in path[1:-1]:
        members = members[name].members
    return path[-1] in members


def _is_regular(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return len(kind) > 0 and all(_is_regular(one.type) for one in kind)
    if pa.types.is_list(kind):
        return kind.value_type in _SCALARS[:4]
    return kind in _SCALARS


def _has_text(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return len(kind) > 0 and all(_has_text(one.type) for one in kind)
    if pa.types.is_list(kind):
        return kind.value_type in _SCALARS[:4] or (
            pa.types.is_struct(kind.value_type) and _has_text(kind.value_type)
        )
    return kind in _SCALARS


def _unified(one: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    if one is None:
        return other
    schemas = [pa.schema([("v", kind)]) for kind in (one, other)]
    return pa.unify_schemas(schemas, promote_options="permissive").field("v").type
