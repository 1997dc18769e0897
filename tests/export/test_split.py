"""Exports of a search that is split by the values of a filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames.errors import ServerError
from tests.scripted import Received, Reply, json, scripted

pytestmark = pytest.mark.long

FORMATS = ("people.csv", "people.parquet", "people")
FOUND = {"CEO": range(30), "CTO": range(10, 60), "CFO": range(55, 70)}
SEARCH: dict[str, Any] = {"person_titles": list(FOUND), "split_by": "person_titles"}


def page_of(request: Received) -> Reply:
    """Return a page of ten people who have the requested titles."""
    body = request.json
    numbers = sorted({number for title in body["person_titles"] for number in FOUND[title]})
    begin = (body["page"] - 1) * body["page_size"]
    return json(
        {
            "results": [{"id": f"p{n}", "n": n} for n in numbers[begin:][: body["page_size"]]],
            "_pagination": {
                "total": len(numbers),
                "total_pages": -(-len(numbers) // body["page_size"]),
            },
        }
    )


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        *(("people", request) for request in (1, 4)),
        ("people.parquet", 10),
        ("people.csv", 5),
        *(
            pytest.param(name, request, marks=pytest.mark.slow)
            for name in FORMATS
            for request in (1, 2, 4, 5, 9, 10, 11)
        ),
    ],
)
def test_a_split_export_resumes_in_the_failed_value(
    tmp_path: Path, name: str, failing: int
) -> None:
    """Whichever request fails, a repeated call exports each person once, with the first value."""
    left = iter(range(1, failing))

    def reply(request: Received) -> Reply:
        return page_of(request) if mended or next(left, None) else json({}, 500)

    mended: list[bool] = []
    with (
        scripted(reply) as service,
        of.connect(service.url, "token", cache=None, max_wait=0, workers=1),
    ):
        with pytest.raises(ServerError):
            of.export_people(tmp_path / name, page_size=10, **SEARCH)
        mended.append(True)
        people = of.read_prospects(of.export_people(tmp_path / name, page_size=10, **SEARCH))
    assert people["n"].tolist() == list(range(70))
    expected = ["CEO"] * 30 + ["CTO"] * 30 + ["CFO"] * 10
    assert people["person_titles"].tolist() == expected
