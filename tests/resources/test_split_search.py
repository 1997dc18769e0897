"""Searches split by a filter's values: their people, order and warnings."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError, OutreachWarning, ServiceError
from tests.examples import share_of_examples
from tests.resources.search_service import connected
from tests.scripted import Received, Reply, json, scripted

SENIORITIES = ["vp", "c_suite", "director"]
TITLES = ["Head", "Manager", "Director", "of", "a"]


def one_by_one(values: list[str], limit: int | None) -> pd.DataFrame:
    """Search each value separately and keep each person once, as users would by hand."""
    frames = [
        of.search_people(person_titles=[value], limit=None).assign(person_titles=value)
        for value in values
    ]
    return pd.concat(frames).drop_duplicates("id").head(limit)


@given(
    values=st.lists(st.sampled_from(TITLES), min_size=1, unique=True),
    limit=st.none() | st.integers(1, 400),
)
@share_of_examples(0.1)
def test_a_split_search_is_one_search_per_value(
    client: Client, values: list[str], limit: int | None
) -> None:
    """A split search returns the separate searches' people in order, once, with their value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutreachWarning)
        found = of.search_people(person_titles=values, split_by="person_titles", limit=limit)
        expected = one_by_one(values, limit)
    assert found["id"].tolist() == expected["id"].tolist()
    assert found["person_titles"].tolist() == expected["person_titles"].tolist()
    assert found["person_titles"].cat.categories.tolist() == values
    assert found["person_titles"].cat.ordered


@pytest.mark.parametrize("dtype_backend", ["numpy_nullable", "pyarrow"])
def test_an_empty_frame_has_the_column(client: Client, dtype_backend: Any) -> None:
    """The column with the values is the last one, also in an empty frame."""
    options = {"split_by": "person_titles", "dtype_backend": dtype_backend}
    with pytest.warns(OutreachWarning, match="Nobody matches"):
        nobody = of.search_people(person_titles=["Xyzzy", "Plugh"], **options)
    many = of.search_people(person_titles=["Xyzzy", "of"], limit=None, **options)
    assert len(nobody) == 0
    assert nobody.columns.tolist() == many.columns.tolist()
    assert nobody.columns[-1] == "person_titles"
    assert nobody["person_titles"].cat.categories.tolist() == ["Xyzzy", "Plugh"]


@pytest.mark.parametrize(
    ("split_by", "filters", "said"),
    [
        ("person_senioritys", {}, "Did you mean .*person_seniorities"),
        ("person_name", {"person_name": "Ada"}, "not a filter that takes a list of values"),
        ("person_exclude_locations", {"person_exclude_locations": ["Rome"]}, "not a filter"),
        ("person_titles", {}, r"Pass person_titles=\[\.\.\.\] too"),
        (3, {}, "not a filter"),
    ],
)
def test_an_invalid_split_is_an_error(
    client: Client, split_by: Any, filters: dict[str, Any], said: str
) -> None:
    """A search can be split only by a filter with a list of values in the search."""
    with pytest.raises(InvalidInputError, match=said):
        of.search_people(filters, split_by=split_by)


def cutting_service(most: int, found: dict[str, list[int]]) -> Any:
    """Return a service that counts everybody but returns a limited number per search."""

    def reply(request: Received) -> Reply:
        body = request.json
        numbers = sorted({n for title in body["person_titles"] for n in found[title]})
        begin = (body["page"] - 1) * body["page_size"]
        end = min(begin + body["page_size"], most)
        pages = -(-min(len(numbers), most) // body["page_size"])
        return json(
            {
                "results": [{"id": f"p{number}"} for number in numbers[begin:end]],
                "_pagination": {"total": len(numbers), "total_pages": pages},
            }
        )

    return reply


@pytest.mark.parametrize(("most", "missing"), [(4, 4), (5, 2), (6, 0)])
def test_people_missed_by_a_split_search_are_counted(most: int, missing: int) -> None:
    """The sum over the values is compared with the total, and a warning gives both."""
    found = {"CEO": list(range(6)), "CTO": list(range(6, 12))}
    with (
        scripted(cutting_service(most, found)) as service,
        connected(service, max_wait=0),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        people = of.search_people(
            person_titles=["CEO", "CTO"], split_by="person_titles", limit=None
        )
    said = [str(one.message) for one in caught]
    assert len(people) == 12 - missing
    assert [f"12 people but returned {12 - missing}" in one for one in said] == [True] * bool(
        missing
    )


def test_a_value_with_repeated_people_is_read_completely() -> None:
    """Pages full of people found for an earlier value do not end the search for a later value."""
    found = {"CEO": list(range(500)), "CTO": list(range(501))}
    with scripted(cutting_service(1000, found)) as service, connected(service, max_wait=0):
        people = of.search_people(
            person_titles=["CEO", "CTO"], split_by="person_titles", limit=None
        )
    assert people["person_titles"].value_counts(sort=False).tolist() == [500, 1]


def test_a_partial_frame_has_the_values() -> None:
    """An error's partial frame has the column with the values."""

    def reply(request: Received) -> Reply:
        if request.json["person_titles"] == ["CTO"]:
            return json({}, 403)
        return cutting_service(9, {"CEO": [1, 2], "CTO": [3]})(request)

    with (
        scripted(reply) as service,
        connected(service, max_wait=0),
        pytest.raises(ServiceError) as caught,
    ):
        of.search_people(person_titles=["CEO", "CTO"], split_by="person_titles")
    assert caught.value.partial["person_titles"].tolist() == ["CEO", "CEO"]  # type: ignore[attr-defined]
