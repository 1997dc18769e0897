"""NDJSON bytes, one person in JSON on each line -> flat Arrow tables, with no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, InvalidResponseError
from outreach_frames.reading.fast_reader import BOM, read_columns
from outreach_frames.reading.pages import read_people_page

_LINES_AT_ONCE: Final = 500
_BODY: Final = f'{{"{spec.RESULTS_KEY}":[%b],"{spec.PAGINATION_KEY}":{{}}}}'.encode()


def read_ndjson(
    content: bytes, name: str, *, start: int = 0, columns: Sequence[str] | None = None
) -> list[pa.Table]:
    r"""Read people that stand one on each line.

    Parameters
    ----------
    content : bytes
        Whole lines of UTF-8. Blank ones are passed over, and the last may have no line break.
    name : str
        What the content came from, for messages.
    start : int, default 0
        The byte of the file at which the content begins.
    columns : sequence of str, optional
        Columns of the interface that are wanted. Others may be missing then, which is faster.

    Returns
    -------
    list of pyarrow.Table
        In order, as `people` of `read_people_page`; none where there is nobody.

    Raises
    ------
    InvalidInputError
        When a line is not one person; it is named by its number, and by its first byte in the file
        where the content is not the file's beginning.

    Examples
    --------
    >>> [table.num_rows for table in read_ndjson(b'{"id": "1"}\n\n{"id": "2"}', "people.ndjson")]
    [2]
    """
    lines = [line for line in _without_bom(content, start).split(b"\n") if line.strip()]
    tables = []
    for first in range(0, len(lines), _LINES_AT_ONCE):
        group = lines[first : first + _LINES_AT_ONCE]
        # Lines too large to be read at once may still be so one by one.
        found = (
            (_some_columns(group, columns) if columns else [])
            or _people(group)
            or [table for line in group for table in _people([line])]
        )
        if sum(table.num_rows for table in found) != len(group):
            raise InvalidInputError(_wrong_line(content, name, start))
        tables += found
    return tables


def _people(lines: Sequence[bytes]) -> list[pa.Table]:
    """Read lines as one page of people; nothing where they are not one person each."""
    try:
        people = read_people_page(_BODY % b",".join(lines)).people
    except InvalidResponseError:
        return []
    return [people] if people.num_rows == len(lines) and all(map(_is_object, lines)) else []


def _some_columns(lines: Sequence[bytes], columns: Sequence[str]) -> list[pa.Table]:
    """Read some columns only; nothing where it takes the others to read them."""
    try:
        people = read_columns(_BODY % b",".join(lines), columns)
    except ValueError:
        return []
    return [people] if people.num_rows == len(lines) and all(map(_is_object, lines)) else []


def _without_bom(content: bytes, start: int) -> bytes:
    return content if start else content.removeprefix(BOM)


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{")


def _wrong_line(content: bytes, name: str, start: int) -> str:
    """Say which line is the first that is not one person, and why."""
    offset = start
    lines: Sequence[bytes] = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        problem = _problem(_without_bom(line, offset))
        if problem:
            place = f"the line at byte {offset:,}" if start else f"line {number:,}"
            return f"{name}: {place} {problem}. One person in JSON is expected on each line."
        offset += len(line) + 1
    return f"{name} is not one person in JSON on each line."


def _problem(line: bytes) -> str | None:
    if not line.strip():
        return None
    try:
        if not isinstance(json.loads(line.decode()), dict):
            return "is not a JSON object"
        return None if _people([line]) else "has too many values, or is nested too deeply"
    except (ValueError, RecursionError) as error:
        return f"is not valid JSON ({error})"
