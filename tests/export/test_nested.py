"""Exports of people with nested undocumented fields, whose types may change between pages."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.errors import OutreachWarning
from tests.examples import share_of_examples
from tests.resources.search_service import connected, result
from tests.scripted import Received, Reply, scripted

pytestmark = pytest.mark.long

ENDS = [".parquet", "", ".csv"]
LEAVES = st.sampled_from([None, None, 0, 2**60, 0.5, True, "", "x"])
NESTED: Any = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)
ELEMENTS = st.none() | st.fixed_dictionaries({}, optional={"score": NESTED, "degree": LEAVES})
PEOPLE = st.fixed_dictionaries(
    {},
    optional={
        "educations": st.lists(ELEMENTS, max_size=3),
        "new": NESTED,
        "company": st.fixed_dictionaries({}, optional={"technologies": st.lists(NESTED)}),
    },
)
PAGES = st.lists(st.lists(PEOPLE, min_size=1, max_size=3), min_size=1, max_size=3)
NULLS: Any = [{"score": {"a": None}}] * 2
LISTS: Any = [{"score": {"a": [None, None], "b": 1}}] * 2
TYPED: Any = [{"score": {"a": [None, None], "b": 0.5}}] * 2


@given(PAGES)
@example([[{"educations": NULLS}], [{"educations": NULLS, "new": 1}]])
@example(
    [
        [{"educations": LISTS, "new": [{"a": [None, None], "b": 1}]}],
        [{"educations": TYPED, "new": [{"a": [None, None], "b": 0.5}]}],
    ]
)
@share_of_examples(0.05)
def test_nested_fields_of_any_type_are_exported(
    tmp_path_factory: pytest.TempPathFactory, pages: list[list[dict[str, Any]]]
) -> None:
    """Whatever fields the pages have, every format reads back as the frame of the search."""
    folder: Path = tmp_path_factory.mktemp("nested")
    people = [
        [{"id": f"{number}-{row}"} | person for row, person in enumerate(page)]
        for number, page in enumerate(pages)
    ]

    def reply(request: Received) -> Reply:
        page, there = request.json["page"], sum(map(len, people))
        found = people[page - 1] if page <= len(people) else []
        return result(found, page=page, total_pages=len(people), total=there)

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", OutreachWarning)
        service = stack.enter_context(scripted(reply))
        stack.enter_context(connected(service))
        expected = of.search_people(limit=None, page_size=3)
        assert [expected[name].tolist() for name in expected]
        paths = [of.export_people(folder / f"export{end}", page_size=3) for end in ENDS]
    for path in paths:
        read = of.read_prospects(path)
        assert read.dtypes.equals(expected.dtypes)
        assert read.equals(expected)
    expected.outreach.unlist()
    expected.outreach.educations()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        assert not len(of.compare_people(paths[0], expected).changed)
