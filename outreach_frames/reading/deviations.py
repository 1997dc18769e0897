"""Compare JSON records with the documented fields of a resource."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from outreach_frames import spec
from outreach_frames.common.text import plural

# Names of other forms may be personal data and are only counted, as are undocumented values.
_PLAIN: Final = re.compile(r"[a-z0-9_]{1,60}")
_SHOWN_NAMES: Final = 20
_TYPE_NAMES: Final[Mapping[type, str]] = {
    **{str: "string", int: "integer", float: "number", bool: "boolean"},
    **{dict: "object", list: "array"},
}


def _read_date_time(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a date-time has an offset")


# Functions that raise ValueError for text in another format.
_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "date": date.fromisoformat,
    "date-time": _read_date_time,
    "uuid": UUID,
}
# Known labels of fields whose values the interface document does not list.
_SUGGESTIONS: Final = {
    "company.size": spec.SUGGESTED_COMPANY_SIZES,
    "company.type": spec.SUGGESTED_COMPANY_TYPES,
}


class Deviation(NamedTuple):
    """A difference from the interface document, at the path of a field, such as `user.id`."""

    path: str
    detail: str
    is_addition: bool = False  # an undocumented field or label


def find_deviations(
    records: Sequence[Any],
    fields: Sequence[spec.Field],
    *,
    all_expected: bool = True,
    path: str = "",
) -> Iterator[Deviation]:
    """Yield the differences between records and documented fields: names and counts.

    With `all_expected`, also report optional fields that all records lack.

    >>> [*find_deviations([{"id": 1}], [spec.Field("id"), spec.Field("name")])]
    [Deviation(path='id', detail='integer instead of string in 1 of 1', is_addition=False), \
Deviation(path='name', detail='missing in 1 of 1', is_addition=False)]
    """
    for field in fields:
        if field.name == spec.LINKS_KEY:
            continue  # the members of `_links` differ from page to page
        place = f"{path}{field.name}"
        values = [record[field.name] for record in records if field.name in record]
        # Null counts as a value, except in a required field.
        absent = len(records) - len(values) + (values.count(None) if field.required else 0)
        expected = all_expected and not values and field.name != spec.ERRORS_KEY
        if absent and (field.required or expected):
            yield Deviation(place, f"missing in {absent:,} of {len(records):,}")
        yield from _compare_values(values, field, place, all_expected=all_expected)
    documented = {field.name for field in fields}
    extra = Counter(name for record in records for name in record if name not in documented)
    plain = [name for name in extra if _PLAIN.fullmatch(name)]
    for name in plain[:_SHOWN_NAMES]:
        share = f"in {extra[name]:,} of {len(records):,}"
        yield Deviation(f"{path}{name}", share, is_addition=True)
    if others := len(extra) - len(plain[:_SHOWN_NAMES]):
        names = plural(others, "other undocumented name")
        yield Deviation(f"{path}*", names, is_addition=True)


def _compare_values(
    values: Sequence[Any], field: spec.Field, place: str, *, all_expected: bool
) -> Iterator[Deviation]:
    present = [value for value in values if value is not None]
    accepted = {field.type, "integer"} if field.type == "number" else {field.type}
    right = [value for value in present if _TYPE_NAMES[type(value)] in accepted]
    if len(right) < len(present):
        found = " or ".join(sorted({_TYPE_NAMES[type(value)] for value in present} - accepted))
        share = f"{len(present) - len(right):,} of {len(present):,}"
        yield Deviation(place, f"{found} instead of {field.type} in {share}")
    if field.type == "array" and field.items:
        elements = [element for value in right for element in value]
        if absent := elements.count(None):
            yield Deviation(f"{place}[]", f"missing in {absent:,} of {len(elements):,}")
        element = spec.Field(field.name, field.items, members=field.members)
        yield from _compare_values(elements, element, f"{place}[]", all_expected=all_expected)
    elif field.type == "object" and field.members:
        yield from find_deviations(
            right, field.members, all_expected=all_expected, path=f"{place}."
        )
    elif field.type == "string":
        yield from _compare_texts(right, field, place)


def _compare_texts(texts: Sequence[str], field: spec.Field, place: str) -> Iterator[Deviation]:
    invalid = [text for text in texts if not _is_in_format(text, field.format)]
    if invalid:
        share = f"{len(invalid):,} of {len(texts):,}"
        yield Deviation(place, f"is not in the format {field.format} in {share}")
    if field.constant and set(texts) - {field.constant}:
        yield Deviation(place, f"is not always {field.constant}")
    known = field.values or _SUGGESTIONS.get(place.rpartition("[].")[2], ())
    if unknown := {text for text in texts if known and text not in known}:
        values = plural(len(unknown), "undocumented value")
        yield Deviation(place, f"has {values}", is_addition=True)


def _is_in_format(text: str, name: str) -> bool:
    try:
        _FORMATS.get(name, str)(text)
    except ValueError:
        return False
    return True
