"""The state of a people search: its form, request body, code and suggestions."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.common.arguments import HEADCOUNTS
from outreach_frames.resources.search_arguments import COLUMNS, DEFAULT_LIMIT
from outreach_frames.widgets.people_search.state import (
    MAX_SUGGESTIONS,
    build_form,
    search_code,
    suggest,
    tidy_filters,
)
from tests.filter_values import good_value

pytestmark = pytest.mark.long

TEXTS = [
    "CEO",
    "it's",
    'the "best"',
    """both ' and " here""",
    """more "double" than '""",
    "back\\slash \\' \\\" \\n",
    "C:\\new\\",
    "東京 Zoë",
    "two\nlines\tand a tab",
    "{braces} %s $x",
    "\u202e\u200b\x00",
    "#no comment",
]
ALL = {one.name: good_value(one) for one in spec.FILTERS}


def filters_of_any_kind() -> st.SearchStrategy[dict[str, Any]]:
    """Draw valid filters, with any text in free-text fields."""
    text = st.sampled_from(TEXTS) | st.text(min_size=1).filter(lambda one: bool(one.strip()))
    free = {"string": text, "boolean": st.booleans(), "array": st.lists(text, min_size=1)}
    values = {
        one.name: st.just(good_value(one)) if one.format else free[one.type] for one in spec.FILTERS
    }
    return st.fixed_dictionaries({}, optional=values)


def fields_of(form: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all fields of a form in the page's order."""
    return [field for group in form["groups"] for row in group["rows"] for field in row]


def test_the_form_has_every_filter_once() -> None:
    """Each filter is one field of its group with a unique label."""
    form = build_form()
    assert form["order"] == [one.name for one in spec.FILTERS]
    assert [group["name"] for group in form["groups"]] == list(spec.FILTER_GROUPS)
    for group in form["groups"]:
        fields = [field for row in group["rows"] for field in row]
        expected = {one.name for one in spec.FILTERS if one.group == group["name"]}
        assert len(fields) == len(expected)
        assert {field["name"] for field in fields} == expected
        assert len({field["label"] for field in fields}) == len(fields)
    assert len(fields_of(form)) == len(spec.FILTERS)


def test_a_new_filter_appears_by_itself() -> None:
    """A filter or group added to the interface appears in the form."""
    added = (
        spec.Filter("company_moods", "company", suggestions=("good", "bad")),
        spec.Filter("company_exclude_moods", "company", excludes="company_moods"),
        spec.Filter("weather_is_fair", "weather", "boolean", note="as the service sees it"),
    )
    form = build_form((*spec.FILTERS, *added))
    assert form["order"][-3:] == [one.name for one in added]
    company = form["groups"][1]
    assert [field["label"] for field in company["rows"][-1]] == ["Moods", "Exclude moods"]
    assert company["rows"][-1][0]["suggestions"] == ["good", "bad"]
    assert form["groups"][-1]["title"] == "Weather"
    (weather,) = form["groups"][-1]["rows"][0]
    assert (weather["label"], weather["type"]) == ("Is fair", "boolean")
    assert weather["title"] == "weather_is_fair: as the service sees it"


@pytest.mark.parametrize(
    ("name", "commas"),
    [
        ("person_titles", True),
        ("company_domains", True),
        ("company_exclude_locations", False),
        ("education_company_names", False),
    ],
)
def test_values_of_some_fields_may_contain_commas(name: str, commas: bool) -> None:
    """A comma ends a value except in fields whose values contain commas; titles say which."""
    (field,) = [field for field in fields_of(build_form()) if field["name"] == name]
    assert field["commas"] == commas
    assert ("Tab or comma" in field["title"]) == commas


def test_empty_filters_are_absent() -> None:
    """Empty fields are not filters, but False is a filter."""
    for one in spec.FILTERS:
        assert tidy_filters({one.name: {"string": "", "array": []}.get(one.type)}) == {}
        assert tidy_filters({one.name: None}) == {}
        if one.type == "boolean":
            assert tidy_filters({one.name: False}) == {one.name: False}


def test_filters_are_plain_and_in_order() -> None:
    """Filters are plain copies in the interface's order, however the fields were filled in."""
    backwards = dict(reversed(ALL.items()))
    assert list(tidy_filters(backwards)) == list(ALL)
    assert tidy_filters(backwards) == ALL
    given = {"person_titles": pd.Series(["CEO"]), "person_title_exact_match": np.True_}
    tidied = tidy_filters(given)
    assert tidied == {"person_titles": ["CEO"], "person_title_exact_match": True}
    assert [type(value) for value in tidied.values()] == [list, bool]
    titles = ["CEO"]
    tidied = tidy_filters({"person_titles": titles})
    titles.append("CTO")
    assert tidied == {"person_titles": ["CEO"]}


def searched_with(code: str) -> dict[str, Any]:
    """Run a search's code, and return the arguments that it passes."""
    recorder = SimpleNamespace(search_people=lambda **given: given)
    names: dict[str, Any] = {"of": recorder, "client": "the client"}
    exec(code, names)
    return names["people"]


@given(filters_of_any_kind(), st.none() | st.integers(1, 10**9), st.sampled_from(HEADCOUNTS))
def test_code_says_the_same(filters: dict[str, Any], limit: int | None, headcount: Any) -> None:
    """The code of any search passes its arguments without defaults."""
    arguments = dict(filters)
    if limit != DEFAULT_LIMIT:
        arguments["limit"] = limit
    if headcount != "all":
        arguments["headcount"] = headcount
    assert searched_with(search_code(filters, limit, headcount)) == arguments
    named = search_code(filters, limit, headcount, with_client=True)
    assert searched_with(named) == {**arguments, "client": "the client"}


def test_code_is_formatted() -> None:
    """A formatter leaves code unchanged whose arguments fit their lines."""
    short = {name: value for name, value in ALL.items() if len(repr(value)) < 40}
    code = "\n".join(
        search_code(filters)
        for filters in ({}, {"person_titles": ["CEO"]}, short, {"person_titles": TEXTS[:3]})
    )
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=88"]
    command += ["--config=format.quote-style='preserve'", "-"]
    formatted = subprocess.run(
        command, input=f"{code}\n", capture_output=True, check=True, text=True
    )
    assert formatted.stdout == f"{code}\n"


def test_suggestions_come_from_existing_columns() -> None:
    """Each source of suggestions is a column of people or contacts, for a list filter."""
    known = {*spec.columns(spec.PERSON), *spec.columns(spec.CONTACT)}
    members = {field.name: field for field in spec.PERSON}
    for name, columns in COLUMNS.items():
        assert spec.FILTERS_BY_NAME[name].type == "array"
        for column in columns:
            outer, _, member = column.partition(".")
            assert outer in known
            if member:
                assert member in {one.name for one in members[outer].members}


def test_suggestions_of_a_column() -> None:
    """Suggestions are a column's most frequent values, also for excluding filters."""
    titles = ["CTO", "CEO", None, "CEO ", "", " ", np.nan, 7, "VP"]
    assert suggest(pd.DataFrame({"title": titles})) == {"person_titles": ["CEO", "CTO", "VP"]}
    found = suggest(pd.DataFrame({"company_industry": ["Tools"]}))
    assert found == {"company_industries": ["Tools"], "company_exclude_industries": ["Tools"]}
    websites = ["https://www.alpha.example/a", "beta.example", "http://[", "mailto:x"]
    found = suggest(pd.DataFrame({"company_website": websites}))
    assert found["company_domains"] == ["alpha.example", "beta.example"]
    found = suggest(pd.DataFrame({"title": [f"Title {number}" for number in range(2000)]}))
    assert len(found["person_titles"]) == MAX_SUGGESTIONS
    frame = pd.DataFrame([["CEO", "x"]], columns=["title", "title"])
    assert suggest(frame) == {"person_titles": ["CEO"]}


def test_schools_are_suggested() -> None:
    """Schools are suggested from the elements of list cells; other cells are ignored."""
    educations = [[{"school_name": "Uni A"}, None, {}], None, "text", [{"school_name": "Uni A"}]]
    frame = pd.DataFrame({"educations": educations})
    assert suggest(frame) == {"education_company_names": ["Uni A"]}
    as_arrays = frame.map(lambda cell: np.array(cell) if isinstance(cell, list) else cell)
    assert suggest(as_arrays) == {"education_company_names": ["Uni A"]}


def test_suggestions_add_up() -> None:
    """Earlier suggestions and those of a frame are counted together, and None gives none."""
    known = {"person_titles": ["VP"], "person_seniorities": ["vp"]}
    found = suggest(pd.DataFrame({"title": ["CEO", "VP"], "other": [1, 2]}), known)
    assert found == {"person_titles": ["VP", "CEO"], "person_seniorities": ["vp"]}
    assert suggest(None) == {}
