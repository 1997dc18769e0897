"""Hypothesis strategies for people search results, made from the interface's fields."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from outreach_frames import spec

INT64 = st.integers(-(2**63), 2**63 - 1)
EXACT_FLOATS = st.floats(1 - 2**53, 2**53 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["", "N/A", "null", "00123", "2024-02-29", "Zoë", "東京", "x\x00y", "\r\n", "=1+1"]
)
DATES = st.dates().map(str)

# Undocumented field names; some look like paths.
UNKNOWN_NAMES = st.sampled_from(["zz", "new field", "x_y", "", "Ω", "value"])

UNKNOWN_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), EXACT_FLOATS, TEXTS
)
UNKNOWN_VALUES = st.recursive(
    UNKNOWN_SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(UNKNOWN_NAMES, inner, max_size=2),
    max_leaves=4,
)

_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": INT64,
    "number": EXACT_FLOATS,
    "boolean": st.booleans(),
}


def fitting(field: spec.Field) -> st.SearchStrategy[Any]:
    """Draw a value of a field's type, or null."""
    if field.type == "object":
        return st.none() | objects(field.members)
    if field.type == "array":
        if field.items == "object":
            return st.none() | st.lists(st.none() | objects(field.members), max_size=3)
        element = _SCALARS[field.items or "string"]
        return st.none() | st.lists(st.none() | element, max_size=3)
    if field.format == "date":
        return st.none() | DATES
    return st.none() | _SCALARS[field.type]


def objects(
    fields: tuple[spec.Field, ...],
    values: Callable[[spec.Field], st.SearchStrategy[Any]] = fitting,
) -> st.SearchStrategy[dict[str, Any]]:
    """Draw an object with some of these fields."""
    by_name = {field.name: field for field in fields}
    names = st.lists(st.sampled_from(sorted(by_name)), unique=True, max_size=6)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: values(by_name[name]) for name in chosen})
    )


def people() -> st.SearchStrategy[dict[str, Any]]:
    """Draw people with documented fields of the documented types."""
    return objects(spec.PERSON)


@st.composite
def odd_people(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a person with values of wrong types and with undocumented fields."""
    person = draw(objects(spec.PERSON, _fitting_or_not))
    person |= draw(st.dictionaries(UNKNOWN_NAMES, UNKNOWN_VALUES, max_size=2))
    if isinstance(person.get("company"), dict):
        person["company"] |= draw(st.dictionaries(UNKNOWN_NAMES, UNKNOWN_VALUES, max_size=2))
    experiences = person.get("experiences")
    for experience in experiences if isinstance(experiences, list) else ():
        if isinstance(experience, dict):
            experience.update(draw(st.dictionaries(UNKNOWN_NAMES, UNKNOWN_SCALARS, max_size=1)))
    return person


def _fitting_or_not(field: spec.Field) -> st.SearchStrategy[Any]:
    if field.type == "object":
        return fitting(field) | objects(field.members, _fitting_or_not) | UNKNOWN_VALUES
    return fitting(field) | UNKNOWN_VALUES


# Names that an undocumented field may have anywhere: plain, documented elsewhere, hard to learn.
ANY_NAMES = UNKNOWN_NAMES | st.sampled_from(
    [
        *("score", "a-b", "id", "name", "locations", "company_name", "learned_0", "_x", "__init__"),
        *("results", 'say "x"', "a\\b", "tab\t", "\x00", "é", "n" * 101),
    ]
)
# Numbers that a fast parser rounds or rejects.
_HARD_NUMBERS = st.sampled_from([2**53 + 1, 2**63, 2**70, 1e22, 12.0, -0.0, 5e-324, float("nan")])


@st.composite
def objects_at_every_level(draw: st.DrawFn, fields: tuple[spec.Field, ...]) -> dict[str, Any]:
    """Draw an object in which objects at every level may have undocumented or unusual members."""
    found = draw(objects(fields, _unusual_at_every_level))
    further = st.dictionaries(ANY_NAMES, UNKNOWN_VALUES | _HARD_NUMBERS, max_size=2)
    # In some order, so that undocumented members are not always last.
    members = list((found | draw(st.just({}) | further)).items())
    return dict(draw(st.permutations(members)))


def _unusual_at_every_level(field: spec.Field) -> st.SearchStrategy[Any]:
    if field.type == "object" and field.members:
        usual = objects_at_every_level(field.members)
    elif field.members:
        usual = st.lists(objects_at_every_level(field.members), max_size=2)
    else:
        return st.one_of(fitting(field), fitting(field), UNKNOWN_VALUES | _HARD_NUMBERS)
    return st.one_of(usual, usual, usual, st.none(), UNKNOWN_VALUES)


@st.composite
def responses_at_every_level(draw: st.DrawFn) -> bytes:
    """Draw a response of people search that is unusual at any level, with any escapes."""
    people = draw(st.lists(st.none() | objects_at_every_level(spec.PERSON), max_size=3))
    further = draw(st.just({}) | st.dictionaries(ANY_NAMES, UNKNOWN_VALUES, max_size=2))
    paging = draw(st.dictionaries(ANY_NAMES, UNKNOWN_VALUES | _HARD_NUMBERS, max_size=2))
    response = further | {"results": people, "_pagination": paging}
    if draw(st.booleans()):
        response["_errors"] = draw(UNKNOWN_VALUES)
    text = json.dumps(response, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = re.sub(r'"([a-z])(?=\w*": )', lambda name: f'"\\u{ord(name[1]):04x}', text)
    return text.encode("utf-8", "surrogatepass")
