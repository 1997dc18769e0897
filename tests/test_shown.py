"""Messages show a part of a long text, and requests have the service's number of values."""

from __future__ import annotations

import json as jsonlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import OutreachError, OutreachWarning
from tests.resources.search_service import connected, result
from tests.scripted import json, scripted

pytestmark = pytest.mark.long


def said(call: Callable[[], object]) -> str:
    """Return a call's warnings or its error message."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutreachWarning)
        try:
            call()
        except OutreachError as error:
            return str(error)
    return "\n".join(str(one.message) for one in caught)


LONG = "x" * 50_000
LONG_VALUES: dict[str, Callable[[Any], object]] = {
    "saved format": of.load_filters,
    "filter": lambda _: of.search_people({LONG: 1}),
    "value": lambda _: of.search_people(company_domains=[LONG]),
    "split": lambda _: of.search_people(split_by=LONG),
    "column": lambda _: of.search_people(columns=[LONG]),
    "choice": lambda _: of.sequences(status=LONG),
    "id": lambda _: of.lead_list(LONG),
    "sheet": lambda path: of.read_prospects(path, sheet_name=LONG),
    "frequency": lambda _: of.sending_capacity(of.mailboxes(), 10, freq=LONG),
    "time zone": lambda path: pd.DataFrame({"a": [1]}).outreach.to_excel(
        path.name + ".xlsx", tz=LONG
    ),
    "separator": lambda path: pd.DataFrame({"a": [1]}).outreach.to_csv(path, sep=LONG),
    "address": lambda _: of.forget(email=LONG),
    "profile": lambda _: of.connect(profile=LONG),
    "number": lambda _: of.plots.headcount(pd.DataFrame({LONG: [1]})),
    "frame's column": lambda _: pd.DataFrame({"a": [1]}).outreach.plan("s", email=LONG),
    "two columns": lambda _: pd.DataFrame([[1, 2]], columns=[LONG, LONG]).outreach.to_csv("a.csv"),
    "backend": lambda _: of.sequences(dtype_backend=LONG),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", LONG_VALUES)
def test_no_message_quotes_a_long_text_whole(case: str, client: Any, tmp_path: Path) -> None:
    """Errors and warnings about a text of any length show a part of it, and end with the advice."""
    path = tmp_path / "saved.json"
    path.write_text(jsonlib.dumps({"kind": "outreach_frames people search", "version": LONG}))
    text = said(lambda: LONG_VALUES[case](path))
    assert 0 < len(text) < len(LONG) / 10
    assert text.endswith((".", "?", ")"))


def test_a_services_long_text_is_cut_in_a_warning() -> None:
    """A warning about a status of any length shows a part of it."""
    page = {"id": "1", "object": "lead_list", "status": LONG, "leads": []}
    with scripted([json(page)]) as service, connected(service):
        text = said(lambda: of.lead_list("1"))
    assert len(text) < len(LONG) / 10
    assert text.endswith("it may be incomplete.")


def test_a_search_asks_for_at_most_500_companies() -> None:
    """The companies of a long table are split into searches that the service accepts."""
    accounts = pd.DataFrame({"site": [f"firm{number}.example" for number in range(1001)]})
    nobody = result([], total=0, page=1, page_size=100, total_pages=0)
    with scripted(lambda _: nobody) as service, connected(service):
        accounts.outreach.find_people(domain="site")
    asked = sorted(len(request.json["company_domains"]) for request in service.requests)
    assert asked == [1, 500, 500]
