"""Compare JSON records with the documented fields of a resource."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from outreach_frames import spec
from outreach_frames.common.text import plural

Kind = Literal["missing", "type", "format", "undocumented", "unknown value"]

# Names and labels that cannot be personal data.
_PLAIN: Final = re.compile(r"[A-Za-z_][\w .+-]{0,60}", re.ASCII)
_SHOWN_VALUES: Final = 3
_JSON_TYPES: Final[Mapping[spec.JsonType, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_TYPE_NAMES: Final = {
    str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array",
}  # fmt: skip
# Labels for which the interface document has no list.
_SUGGESTIONS: Final = {
    "company.size": spec.SUGGESTED_COMPANY_SIZES,
    "company.type": spec.SUGGESTED_COMPANY_TYPES,
}


class Deviation(NamedTuple):
    """A difference from the interface document, with the path of the field, such as `user.id`."""

    kind: Kind
    path: str
    detail: str


def find_deviations(
    records: Sequence[Any],
    fields: Sequence[spec.Field],
    *,
    all_expected: bool = True,
    path: str = "",
) -> Iterator[Deviation]:
    """Yield how records differ from documented fields, with names and counts but no values.

    With `all_expected`, a field that no record has is missing; otherwise only a required one is.

    >>> [*find_deviations([{"id": 1, "extra": 0}], [spec.Field("id"), spec.Field("name")])]
    [Deviation(kind='type', path='id', detail='integer instead of string in 1 of 1'), \
Deviation(kind='missing', path='name', detail='missing in 1 of 1'), \
Deviation(kind='undocumented', path='extra', detail='in 1 of 1')]
    """
    objects = [record for record in records if isinstance(record, dict)]
    for field in fields:
        if field.name == spec.LINKS_KEY:
            continue  # its members come and go from page to page
        place = f"{path}{field.name}"
        values = [record[field.name] for record in objects if field.name in record]
        absent = len(objects) - len(values)
        expected = all_expected and not values and field.name != spec.ERRORS_KEY
        if absent and (field.required or expected):
            yield Deviation("missing", place, f"missing in {absent:,} of {len(objects):,}")
        yield from _compare_values(values, field, place, all_expected=all_expected)
    documented = {field.name for field in fields}
    extra = [name for record in objects for name in record if name not in documented]
    for name in dict.fromkeys(extra):
        shown = name if _PLAIN.fullmatch(name) else f"a name of {plural(len(name), 'character')}"
        count = extra.count(name)
        yield Deviation("undocumented", f"{path}{shown}", f"in {count:,} of {len(objects):,}")


def _compare_values(
    values: Sequence[Any], field: spec.Field, place: str, *, all_expected: bool
) -> Iterator[Deviation]:
    present = [value for value in values if value is not None]
    right = [value for value in present if _has_type(value, field.type)]
    wrong = [_type_name(value) for value in present if not _has_type(value, field.type)]
    if wrong:
        found = " or ".join(sorted(set(wrong)))
        share = f"{len(wrong):,} of {len(present):,}"
        yield Deviation("type", place, f"{found} instead of {field.type} in {share}")
    if field.type == "array":
        elements = [element for value in right for element in value]
        if field.members:
            yield from find_deviations(
                elements, field.members, all_expected=all_expected, path=f"{place}[]."
            )
        if field.items:
            element = spec.Field(f"{field.name}[]", field.items)
            yield from _compare_values(elements, element, f"{place}[]", all_expected=all_expected)
    elif field.type == "object" and field.members:
        yield from find_deviations(
            right, field.members, all_expected=all_expected, path=f"{place}."
        )
    elif field.type == "string":
        yield from _compare_texts(right, field, place)


def _compare_texts(texts: Sequence[str], field: spec.Field, place: str) -> Iterator[Deviation]:
    invalid = [text for text in texts if not _has_format(text, field.format)]
    if invalid:
        share = f"{len(invalid):,} of {len(texts):,}"
        yield Deviation("format", place, f"is not in the format {field.format} in {share}")
    if field.constant and any(text != field.constant for text in texts):
        yield Deviation("format", place, f"is not always {field.constant}")
    known = field.values or _SUGGESTIONS.get(place.rpartition("[].")[2], ())
    unknown = [text for text in dict.fromkeys(texts) if known and text not in known]
    if unknown:
        labels = [repr(text) for text in unknown if _PLAIN.fullmatch(text)][:_SHOWN_VALUES]
        others = len(unknown) - len(labels)
        labels += [plural(others, "other value")] if others else []
        yield Deviation("unknown value", place, f"has {', '.join(labels)}")


def _has_type(value: Any, kind: spec.JsonType) -> bool:
    return isinstance(value, _JSON_TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)


def _type_name(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


def _has_format(text: str, kind: spec.Format) -> bool:
    check = _FORMATS.get(kind)
    if check is None:
        return True
    with suppress(ValueError):
        return check(text)
    return False


def _is_date(text: str) -> bool:
    return datetime.date.fromisoformat(text).isoformat() == text


def _is_moment(text: str) -> bool:
    return datetime.datetime.fromisoformat(text).tzinfo is not None and text[10:11] == "T"


def _is_uuid(text: str) -> bool:
    return str(UUID(text)) == text.lower()


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date": _is_date,
    "date-time": _is_moment,
    "uuid": _is_uuid,
    "uri": lambda text: bool(urlsplit(text).scheme and urlsplit(text).netloc),
    "email": lambda text: "@" in text,
}
