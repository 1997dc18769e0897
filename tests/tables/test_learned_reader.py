"""What one page teaches makes the next ones fast, and never changes what they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.tables.cut_fields import cut_out, parsed
from outreach_frames.tables.flatten import as_one_page, people_frame, read_people_pages
from outreach_frames.tables.json_values import LossyParseError, parse_json
from outreach_frames.tables.learned_reader import Learned, read_fast
from outreach_frames.tables.tolerant_reader import records_table
from tests.examples import share_of_examples
from tests.tables.pages import body
from tests.tables.people_strategies import (
    DATES,
    EXACT_FLOATS,
    INT64,
    TEXTS,
    UNKNOWN_VALUES,
    objects,
)

# Where something may stand that the interface does not show, and where it shows another type.
PLACES = [
    ("zz",),
    ("Ω",),
    ("name",),
    ("state",),
    ("current_position_start_date",),
    ("company_zz",),
    ("zz_city",),
    ("company", "zz"),
    ("company", "new field"),
    ("company", "followers"),
    ("company", "locations"),
    ("company", "keywords"),
    ("company", "department_headcount", "zz"),
    ("company", "job_function_headcount", "legal", "legal"),
    ("company",),
    ("location_details", "lat"),
    ("experiences", "zz"),
    ("experiences", "title"),
    ("languages", "object"),
]
ADDRESS = st.fixed_dictionaries(
    {"city": TEXTS}, optional={"lat": EXACT_FLOATS, "primary": st.booleans(), "zip": st.none()}
)
# What one service puts there: mostly of one type.
SENT = [
    INT64,
    EXACT_FLOATS,
    TEXTS,
    DATES,
    DATES.map(lambda day: f"{day}T10:00:00Z"),
    st.booleans(),
    st.none(),
    ADDRESS,
    st.lists(ADDRESS, max_size=2),
    st.lists(TEXTS | st.none(), max_size=2),
    INT64 | TEXTS,
    UNKNOWN_VALUES,
]


def put(person: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    """Set a field of a person, in every element where it is inside a list."""
    first, *rest = place
    if not rest:
        person[first] = value
        return
    inside = person.setdefault(first, {})
    for one in inside if isinstance(inside, list) else [inside]:
        if isinstance(one, dict):
            put(one, tuple(rest), value)


@st.composite
def searches(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Draw the pages of a search whose people all have something that is not shown."""
    odd = draw(st.dictionaries(st.sampled_from(PLACES), st.sampled_from(SENT), max_size=3))
    pages = draw(st.lists(st.lists(objects(spec.PERSON), max_size=3), min_size=1, max_size=4))
    is_always_there = draw(st.booleans())
    for person in (person for page in pages for person in page):
        for place, values in odd.items():
            if is_always_there or draw(st.booleans()):
                if place[0] in ("experiences", "languages"):
                    person.setdefault(place[0], [{}, None, {}])
                put(person, place, draw(values))
    return pages


def dumped(persons: list[dict[str, Any]], style: int) -> bytes:
    """Write a page in one of the styles that services have."""
    result = {"results": persons, "_pagination": {"page": 1, "next": style, "prev": None}}
    if style % 2:
        result = {"_links": {"self": {"page": 1}}, **result, "_errors": [{"a": 1}]}
    separators = [(",", ":"), (", ", ": "), (" ,", " : ")][style % 3]
    return json.dumps(result, ensure_ascii=style > 2, separators=separators).encode()


@share_of_examples(0.5)
@given(searches(), st.integers(0, 5))
def test_what_was_learned_changes_no_page(pages: list[list[dict[str, Any]]], style: int) -> None:
    """Each page, alone, has what the slow and sure way makes of it, whatever came before."""
    learned = Learned()
    for persons in [*pages, *reversed(pages)]:
        sent = dumped(persons, style)
        people = parse_json(sent.decode())[spec.RESULTS_KEY]
        page = read_people_pages([sent], use_threads=False, learned=learned)
        assert page.people.equals(records_table(people, spec.PERSON))
        page.people.validate(full=True)
        assert page.pagination == {"page": 1, "next": style}
        assert page.errors == [{"a": 1}] * (style % 2)


@share_of_examples(0.25)
@given(searches(), st.integers(0, 5), st.booleans())
def test_what_was_learned_changes_no_pages_read_together(
    pages: list[list[dict[str, Any]]], style: int, use_threads: bool
) -> None:
    """Pages that are read as one have the same frame with what was learned as without."""
    bodies = [dumped(persons, style) for persons in pages]
    learned = Learned()
    first = read_people_pages(bodies, use_threads=use_threads, learned=learned)
    again = read_people_pages(bodies, use_threads=use_threads, learned=learned)
    alone = as_one_page([read_people_pages([one]) for one in bodies])
    assert first.people.equals(again.people)
    assert first.heads == again.heads == alone.heads
    people_frame([first])
    if first.people.schema.equals(alone.people.schema):
        assert first.people.equals(alone.people)


@pytest.mark.parametrize(
    "person",
    [
        {"company": {"founded_year": "1999"}},
        {"company": {"followers": 12.0}},
        {"company": {"locations": [{"city": "Oslo"}, "Bergen"]}},
        {"company": "Example"},
        {"zz": 1, "name": {"first": "Ada"}},
        {"experiences": [{"title": 5}]},
        {"experiences": [{"title": "CEO", "zz": [{"a": 1}]}, None], "educations": None},
        {"zz": {"page": 1}, "total": 2},
    ],
    ids=str,
)
def test_one_clash_does_not_leave_the_fast_way(person: dict[str, Any]) -> None:
    """A page that mixes types is read by Arrow but for the fields that do."""
    persons = [{"id": "1", "company": {"name": "x", "followers": 1}}, person]
    learned = Learned()
    for _ in range(2):
        table = read_fast([body(*persons)], learned=learned).people
        assert table.equals(records_table(persons, spec.PERSON))
    assert learned.paths


@pytest.mark.parametrize(
    "persons",
    [
        [{"company_zz": {"a": 1}, "company": {"zz": True}}],
        [{"company_zz": 1, "company": {"zz": {"a": 1}}}],
        [{"company_name": "top", "company": {"name": "nested"}}],
        [{"zz_a": 1, "zz": {"a": 2}}, {"zz": {"a": 3}, "zz_a": 4}],
        [{"zz_a": 1, "zz": {"a": "x"}}, {"zz": {"a": 3}, "zz_a": 4}],
        [{"b": 1, "a": 2}, {"a": 3, "b": None}],
        [{"a": 1}, {"b": 1, "a": 2}, {"c": None, "b": 1}],
        [{}, None, {"company": None}, {"company": {"b": 1, "a": "2020-01-01"}}],
        [{"zz": None, "a": 1}, {"zz": {"b": 1}, "a": None}],
        [{"zz": 1}, {"zz": 2.0}],
        [{"zz": []}, {"zz": [None]}, {"zz": ["x"]}],
        [{"zz": {"a": {"c": 1}, "b": 0.5}}, {"zz": {}}, {"zz": None}],
        [{"company": {"locations": [{"b": 1.0, "a": None}, None, {}]}}],
        [{"company": {"locations": [{"a": 1e-7}, {"a": [{"b": "\b"}]}]}}],
        [{"experiences": [None, {"b": 1}, {"a": "x", "b": None}]}, {"experiences": None}],
    ],
    ids=str,
)
def test_columns_are_those_of_the_slow_way_however_names_meet(persons: list[Any]) -> None:
    """Order, names and types of further columns do not depend on what was learned before."""
    learned = Learned()
    for some in (persons, persons[:1], persons[::-1], persons[-1:], persons * 2):
        for _ in range(2):
            page = read_people_pages([body(*some)], learned=learned)
            assert page.people.equals(records_table(some, spec.PERSON))


@share_of_examples(1)
@given(
    st.recursive(
        st.none() | st.booleans() | INT64 | TEXTS | st.sampled_from(['"a":', '\\"a":1', "a\\"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "", 'x"a', "ab", "ba"]), inner, max_size=3)
        ),
        max_leaves=12,
    ),
    st.sampled_from([(",", ":"), (" , ", ": ")]),
    st.booleans(),
)
def test_cutting_finds_all_fields_of_a_name(
    value: Any, separators: tuple[str, str], ensure_ascii: bool
) -> None:
    """Every value of the named fields is cut out, and nothing else, or all of it refused."""
    sent = json.dumps({"v": value}, separators=separators, ensure_ascii=ensure_ascii).encode()
    written: list[bytes] = []

    def cut(node: Any) -> Any:
        if isinstance(node, list):
            return [cut(one) for one in node]
        if not isinstance(node, dict):
            return node
        return {name: put_aside(one) if name in names else cut(one) for name, one in node.items()}

    def put_aside(one: Any) -> int:
        expected.append(one)
        return len(expected) - 1

    names, expected = ["a", ""], []
    left = cut(value)
    try:
        rest = cut_out(sent, names, written)
    except LossyParseError:
        assert b"\\" in sent or b'" :' in sent
    else:
        assert json.loads(rest) == {"v": left}
        assert parsed(written) == expected


@pytest.mark.parametrize(
    "sent",
    [
        b'{"a" :1}',
        b'{"a"' + b" " * 100 + b":1}",
        b'{"\\u0061":1}',
        b'{"b\\/":1}',
        b'{"a":NaN}',
        b'{"a":01}',
        b'{"a":1 2}',
        b'{"a":"x}',
        b'{"a":tru}',
        b'{"a":' + b"[" * 9 + b"]" * 9 + b"}",
    ],
)
def test_what_cannot_be_cut_with_certainty_is_refused(sent: bytes) -> None:
    """A name that may be spelled in another way, and a value that is not one, are left alone."""
    with pytest.raises(LossyParseError):
        cut_out(sent, ["a"], [])


def test_what_was_in_doubt_once_is_not_read_twice_again() -> None:
    """A field inside an object that is in doubt is left to the slow way from then on."""
    learned = Learned()
    read_fast([body({"zz": {"a": 0.5}, "b": 1})], learned=learned)
    assert learned.types.keys() == {("results", "zz"), ("results", "b")}
    read_fast([body({"zz": {"a": 2.0}, "b": 1})], learned=learned)
    assert learned.types.keys() == {("results", "b")}
    read_fast([body({"zz": {"a": 0.5}})], learned=learned)
    assert learned.types == {}


@pytest.mark.parametrize("sent", [3, True, ["a"], [None], {"c": 1}], ids=json.dumps)
def test_a_further_member_of_another_type_leaves_lists_of_objects_what_they_are(sent: Any) -> None:
    """Where pages differ in a member that the interface does not show, that member becomes text."""
    people: list[dict[str, Any]] = [
        {"id": "1", "experiences": [{"title": "t", "zz": "x"}, None]},
        {"id": "2", "experiences": None},
        {"id": "3", "experiences": [{"zz": sent}, {"title": "u", "zz": None}]},
        {"id": "4", "experiences": []},
    ]
    alone = people_frame([read_people_pages([body(person)]) for person in people], "pyarrow")
    together = people_frame([read_people_pages([body(*people)])], "pyarrow")
    assert alone["experiences"].dtype == together["experiences"].dtype
    assert alone["experiences"].tolist() == together["experiences"].tolist()
    assert alone.outreach.experiences()["title"].dropna().tolist() == ["t", "u"]
