"""Pages that are not quite as the interface shows: only what is unexpected goes the slow way.

What one page teaches, which fields are unexpected, serves the next ones of the same search. Their
values are cut out of the bytes and become columns by way of Python objects, in the tolerant reader;
Arrow's JSON reader reads the rest. What was learned never changes a table, only how long it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from outreach_frames import spec
from outreach_frames.tables.cut_fields import PEOPLE, Path, cut_out, parsed, unexpected_paths
from outreach_frames.tables.fast_reader import (
    PageHead,
    PeoplePage,
    check_exact,
    list_of_errors,
    one_line,
    persons_of,
    present,
    read_as_shown,
    read_documents,
    read_known,
)
from outreach_frames.tables.json_columns import with_elements
from outreach_frames.tables.json_values import LossyParseError, is_exact
from outreach_frames.tables.regular_fields import (
    DoubtError,
    Plan,
    further_column,
    plan_of,
    regular_types,
    seeds_of,
    texts_of_lists,
)
from outreach_frames.tables.schema import wire_type
from outreach_frames.tables.tolerant_reader import inferred, records_table

_NUMBER: Final = pa.int64()
_ERRORS: Final = (spec.ERRORS_KEY,)
_NO_ERRORS: Final = pa.list_(pa.null())
_COLUMNS: Final = spec.columns(spec.PERSON)
# Beyond so many rows the tolerant reader looks at how full they are, known fields included.
_MOST_ROWS: Final = 2_000


class Learned:
    """What the pages of a search have taught; threads may share it.

    Attributes
    ----------
    paths : frozenset of tuple of str
        The fields that are not as the interface shows, on any page so far.
    types : mapping of tuple of str to pyarrow.DataType
        What Arrow can read some of them as.
    """

    def __init__(self) -> None:
        # What one thread learns while another does may be lost, and is learned again.
        self.paths: frozenset[Path] = frozenset()
        self.types: Mapping[Path, pa.DataType] = {}
        self._doubted: frozenset[Path] = frozenset()

    def learn(self, documents: Sequence[Any]) -> bool:
        """Look at parsed responses; tell whether they teach anything new."""
        paths = self.paths | unexpected_paths(documents)
        types = regular_types(documents, paths - self._doubted, self.types)
        is_new = (paths, types) != (self.paths, self.types)
        self.paths, self.types = paths, types
        return is_new

    def doubt(self, paths: frozenset[Path]) -> None:
        """Note that these, and what they are in, are not to be read by Arrow."""
        self._doubted |= {path[:end] for path in paths for end in range(1, len(path) + 1)}
        self.types = {path: kind for path, kind in self.types.items() if path not in self._doubted}


def read_fast(
    bodies: Sequence[bytes], *, use_threads: bool = False, learned: Learned | None = None
) -> PeoplePage:
    """Read bodies in the fastest way that gives what the tolerant reader would give.

    Parameters
    ----------
    bodies : sequence of bytes
        Responses of people search.
    use_threads : bool
        Read with several threads.
    learned : Learned, optional
        What earlier pages taught; gets what these teach.

    Returns
    -------
    PeoplePage
        The people and heads of all.

    Raises
    ------
    ValueError, pyarrow.ArrowTypeError
        When only the tolerant reader can read these bodies, if any.
    """
    bodies = [one_line(body) for body in bodies]
    learned = learned or Learned()
    try:
        if learned.paths:
            return _read_learned(bodies, learned, use_threads=use_threads)
    except (ValueError, pa.ArrowTypeError):
        pass
    try:
        return read_as_shown(bodies, use_threads=use_threads)
    except pa.ArrowInvalid:
        documents = [orjson.loads(body) for body in bodies]
    try:
        if learned.learn(documents):
            return _read_learned(bodies, learned, use_threads=use_threads)
    except (ValueError, pa.ArrowTypeError):
        pass
    return read_known(bodies, documents, use_threads=use_threads)


def _read_learned(bodies: Sequence[bytes], learned: Learned, *, use_threads: bool) -> PeoplePage:
    paths = learned.paths
    try:
        return _read(bodies, paths, plan_of(paths, learned.types), use_threads=use_threads)
    except DoubtError as error:
        learned.doubt(error.paths)
    return _read(bodies, paths, plan_of(paths, {}), use_threads=use_threads)


def _read(
    bodies: Sequence[bytes], paths: frozenset[Path], plan: Plan, *, use_threads: bool
) -> PeoplePage:
    """Read bodies with the values of some fields cut out, and of others by Arrow."""
    seeds = seeds_of(bodies, plan)
    written: list[bytes] = []
    lines = [cut_out(body, plan.cut, written) for body in bodies] if plan.cut else bodies
    values = parsed(written)
    options = _options(paths, frozenset(plan.types.items()), plan.cut)
    document = read_documents(lines, options, use_threads=use_threads)
    persons = persons_of(document, bodies)
    if len(persons) > _MOST_ROWS:
        raise LossyParseError
    ready: dict[str, pa.ChunkedArray] = {}
    further: dict[str, pa.ChunkedArray] = {}
    numbers: list[tuple[Path, pa.ChunkedArray]] = []
    for path, column in _columns(persons):
        name, whole = "_".join(path), (*PEOPLE, *path)
        if path[-1] in plan.cut:
            numbers.append((path, column))
        elif name not in _COLUMNS:
            further[name] = further_column(column, whole)
        elif whole in plan.types:
            ready[name] = texts_of_lists(column, whole)
        else:
            ready[name] = _with_further_members(column, _COLUMNS[name], values)
            if _COLUMNS[name].type == "number":
                check_exact(column)
    records = _records(len(persons), seeds, numbers, values)
    people = records_table(records, spec.PERSON, ready=ready, further=further)
    return PeoplePage(people, _heads(document, values))


@lru_cache(maxsize=32)
def _options(
    paths: frozenset[Path], typed: frozenset[tuple[Path, pa.DataType]], cut: Sequence[str]
) -> arrow_json.ParseOptions:
    """Give the schema of responses where some fields are numbers of values that were cut out."""
    types = dict(typed)

    def fields_of(shown: Sequence[spec.Field], above: Path) -> list[pa.Field]:
        fields = [pa.field(field.name, type_of(field, above)) for field in shown]
        known = {field.name for field in shown}
        return fields + [
            pa.field(path[-1], types.get(path, _NUMBER))
            for path in sorted(paths)
            if path[:-1] == above and path[-1] not in known
        ]

    def type_of(field: spec.Field, above: Path) -> pa.DataType:
        path = (*above, field.name)
        if path in types:
            return types[path]
        if field.name in cut:
            return _NUMBER
        if path == _ERRORS:
            return _NO_ERRORS
        if not field.members:
            return wire_type(field)
        struct = pa.struct(fields_of(field.members, path))
        return pa.list_(struct) if field.type == "array" else struct

    return arrow_json.ParseOptions(
        explicit_schema=pa.schema(fields_of(spec.PEOPLE_SEARCH_RESULT, ())),
        unexpected_field_behavior="error",
    )


def _columns(structs: pa.ChunkedArray, above: Path = ()) -> Iterator[tuple[Path, pa.ChunkedArray]]:
    for field, column in zip(structs.type, structs.flatten(), strict=True):
        if pa.types.is_struct(field.type):
            yield from _columns(column, (*above, field.name))
        else:
            yield (*above, field.name), column


def _records(
    count: int,
    seeds: Sequence[dict[str, Any]],
    numbers: Sequence[tuple[Path, pa.ChunkedArray]],
    values: Sequence[Any],
) -> list[dict[str, Any]]:
    """Make people of what was cut out alone, with names in the order in which they came."""
    records: list[dict[str, Any]] = [*seeds, *({} for _ in range(count - len(seeds)))]
    placed = [
        (number, row, path)
        for path, column in numbers
        for row, number in enumerate(column.to_pylist())
        if number is not None
    ]
    placed.sort()
    for number, row, (*above, name) in placed:
        record = records[row]
        for key in above:
            record = record.setdefault(key, {})
        record[name] = values[number]
    return records


def _with_further_members(
    lists: pa.ChunkedArray, field: spec.Field, values: Sequence[Any]
) -> pa.ChunkedArray:
    """Put the values of further members into a list of objects."""
    if not field.members or lists.type == wire_type(field):
        return lists
    array = lists.combine_chunks()
    result = with_elements(array, lambda elements: _with_values(elements, field, values))
    return pa.chunked_array(
        [pa.ListArray.from_arrays(result.offsets, result.values, mask=array.is_null())]
    )


def _with_values(elements: pa.Array, field: spec.Field, values: Sequence[Any]) -> pa.Array:
    members = dict(zip([one.name for one in elements.type], elements.flatten(), strict=True))
    numbers = {name: members.pop(name) for name in [*members][len(field.members) :]}
    firsts = {name: pc.min(column).as_py() for name, column in numbers.items()}
    found = [name for name in firsts if firsts[name] is not None]
    for name in sorted(found, key=firsts.__getitem__):
        of_elements = [
            None if number is None else values[number] for number in numbers[name].to_pylist()
        ]
        if not is_exact(of_elements):
            raise LossyParseError
        members[name] = inferred(of_elements)
    return pa.StructArray.from_arrays(
        list(members.values()), names=list(members), mask=elements.is_null()
    )


def _heads(document: pa.Table, values: Sequence[Any]) -> list[PageHead]:
    pagination, errors = (document.column(key) for key in (spec.PAGINATION_KEY, spec.ERRORS_KEY))
    rows = pc.list_value_length(document.column(spec.RESULTS_KEY)).to_pylist()
    paginations, listed = (
        [None if one is None else values[one] for one in column.to_pylist()]
        if column.type == _NUMBER
        else column.to_pylist()
        for column in (pagination, errors)
    )
    if not all(type(one) is dict for one in paginations) or not is_exact([paginations, listed]):
        raise LossyParseError
    return [
        PageHead(count, present(one), list_of_errors(error))
        for count, one, error in zip(rows, paginations, listed, strict=True)
    ]
