"""Undocumented fields with any name, at any place, become columns with their names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from outreach_frames import spec
from tests.reading.pages import body, people_frame, read_people_page, read_untyped

PERSON = spec.columns(spec.PERSON)


def names_of(fields: Iterable[spec.Field]) -> Iterator[str]:
    """Yield the names of fields at all levels."""
    for field in fields:
        yield field.name
        yield from names_of(field.members)


NAMES = sorted({*names_of(spec.PEOPLE_SEARCH_RESULT), "page", "total"})


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["zz"], "x"),
        (["company", "zz"], {"results": [1]}),
        (["company", "location_details", "zz"], [{"results": 1}]),
        (["company", "department_headcount", "zz"], 1),
    ],
    ids=str,
)
def test_undocumented_objects_may_reuse_names(keys: list[str], value: Any) -> None:
    """A member of an undocumented object may have the name of any documented field."""
    sent: Any = dict.fromkeys(NAMES, value)
    for key in reversed(keys):
        sent = {key: sent}
    people = [{"id": "1"} | sent, {"id": "2"}]
    frame = people_frame([read_people_page(body(*people))])
    assert frame["id"].tolist() == ["1", "2"]
    ending = "_results" if isinstance(value, dict) else ""
    prefix = "_".join([*keys, ""])
    found = [name for name in frame.columns if name.startswith(prefix)]
    assert found == sorted(f"{prefix}{name}{ending}" for name in NAMES)
    assert read_people_page(body(*people)).people.equals(read_untyped(people))


@pytest.mark.parametrize(
    "persons",
    [
        [{"company_zz": {"a": 1}, "company": {"zz": True}}],
        [{"company_zz": 1, "company": {"zz": {"a": 1}}}],
        [{"company_name": "top", "company": {"name": "nested"}}],
        [{"zz_a": 1, "zz": {"a": 2}}, {"zz": {"a": 3}, "zz_a": 4}],
        [{"zz_a": 1, "zz": {"a": "x"}}, {"zz": {"a": 3}, "zz_a": 4}],
        [{"zz": None, "a": 1}, {"zz": {"b": 1}, "a": None}],
        [{"company": {"locations": [{"b": 1.0, "a": None}, None, {}]}}],
        [{"company": {"locations": [{"a": 1e-7}, {"a": [{"b": "\b"}]}]}}],
    ],
    ids=str,
)
def test_both_readers_return_the_same_columns(persons: list[Any]) -> None:
    """Both readers return undocumented columns in the same order, with the same names and types."""
    for some in (persons, persons[::-1], persons[-1:], persons * 2):
        assert read_people_page(body(*some)).people.equals(read_untyped(some))


@pytest.mark.parametrize("sent", [3, True, ["a"], [None], {"c": 1}], ids=json.dumps)
def test_an_undocumented_member_of_another_type_leaves_lists_of_objects(sent: Any) -> None:
    """If pages differ in the type of a listed object's member, only that member becomes text."""
    people: list[dict[str, Any]] = [
        {"id": "1", "experiences": [{"title": "t", "zz": "x"}, None]},
        {"id": "2", "experiences": None},
        {"id": "3", "experiences": [{"zz": sent}, {"title": "u", "zz": None}]},
        {"id": "4", "experiences": []},
    ]
    alone = people_frame([read_people_page(body(person)) for person in people], "pyarrow")
    together = people_frame([read_people_page(body(*people))], "pyarrow")
    assert alone["experiences"].dtype == together["experiences"].dtype
    assert alone["experiences"].tolist() == together["experiences"].tolist()
    assert alone.outreach.experiences()["title"].dropna().tolist() == ["t", "u"]


def test_undocumented_columns_are_in_alphabetical_order() -> None:
    """Undocumented columns are in alphabetical order, whichever page has them first."""
    pages = [{"id": "1", "zeta": {"deep": 1}}, {"id": "2", "alpha": 1, "company": {"growth": 1}}]
    for some in (pages, pages[::-1]):
        found = people_frame([read_people_page(body(person)) for person in some])
        assert [*found.columns[-3:]] == ["alpha", "company_growth", "zeta_deep"]
