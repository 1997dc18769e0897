"""NDJSON bytes, one person in JSON on each line -> flat Arrow tables, with no I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from outreach_frames import spec
from outreach_frames.errors import InvalidInputError, InvalidResponseError
from outreach_frames.tables.fast_reader import BOM
from outreach_frames.tables.flatten import read_people_page

_LINES_AT_ONCE: Final = 2_000
_BODY: Final = f'{{"{spec.RESULTS_KEY}":[%b],"{spec.PAGINATION_KEY}":{{}}}}'.encode()


def read_ndjson(content: bytes, name: str, *, start: int = 0) -> list[pa.Table]:
    r"""Read people that stand one on each line.

    Parameters
    ----------
    content : bytes
        Whole lines of UTF-8. Blank ones are passed over, and the last may have no line break.
    name : str
        What the content came from, for messages.
    start : int, default 0
        The byte of the file at which the content begins.

    Returns
    -------
    list of pyarrow.Table
        In order, as `people` of `flatten.read_people_page`; none where there is nobody.

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
        try:
            people = read_people_page(_BODY % b",".join(group)).people
        except InvalidResponseError:
            people = None
        if people is None or people.num_rows != len(group) or not all(map(_is_object, group)):
            raise InvalidInputError(_wrong_line(content, name, start))
        tables.append(people)
    return tables


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
        return None if isinstance(json.loads(line.decode()), dict) else "is no JSON object"
    except (ValueError, RecursionError) as error:
        return f"is no JSON ({error})"
