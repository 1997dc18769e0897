"""The network's name is translated in documented keys only."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames.client.request import NetworkName
from outreach_frames.errors import InvalidInputError, OutreachWarning
from tests.resources.search_service import connected, person, result
from tests.scripted import scripted

NAME = "bluebook"

RECEIVED = [
    "profnet_url",
    "company_profnet_url",
    "school_profnet_url",
    "duplicate_profnet_urls",
]
NOT_KNOWN = ["bluebook", "bluebook_urls", "my_bluebook_url", "bluebook_url_2", "note"]

on_wire = [name.replace("profnet", NAME) for name in RECEIVED]
tricky = st.sampled_from(
    [*on_wire, *(f'"{name}":' for name in on_wire), '\\"bluebook_url"', "\\", '"', ":"]
)
texts = tricky | st.text(max_size=8) | st.lists(tricky, max_size=3).map("".join)
keys = st.sampled_from([*on_wire, *NOT_KNOWN]) | texts
documents = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def renamed(value: Any) -> Any:
    """Rename the documented keys of a value recursively."""
    if isinstance(value, list):
        return [renamed(item) for item in value]
    if isinstance(value, dict):
        known = dict(zip(on_wire, RECEIVED, strict=True))
        return {known.get(key, key): renamed(item) for key, item in value.items()}
    return value


@given(documents, st.sampled_from([(",", ":"), (", ", " : "), (",\n", "\t:\r\n ")]), st.booleans())
def test_only_documented_keys_are_translated(
    value: Any, separators: tuple[str, str], ascii_only: bool
) -> None:
    """Translating the bytes gives the same as renaming the parsed keys, in any formatting."""
    body = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
    assert json.loads(NetworkName(NAME).incoming(body)) == renamed(value)


def test_a_search_names_the_network(tmp_path: Path) -> None:
    """The first search of a client with another network's field names the cure, once.

    A search from the cache names it, too.
    """
    url = "https://www.bluebook.example/in/ada"
    people = [person(1) | {"bluebook_url": url}, person(2) | {"bluebook_url": None}]
    with scripted(lambda _: result(people)) as service:
        for requests in (1, 1):
            with connected(service, cache=tmp_path / "cache") as client:
                with pytest.warns(OutreachWarning, match="Pass network_name='bluebook'"):
                    of.search_people(client=client)
                of.search_people(client=client)
            assert len(service.requests) == requests
        with connected(service, network_name="bluebook") as client:
            found = of.search_people(client=client)
    assert found["profnet_url"].tolist()[0] == url


URL = "https://www.bluebook.example/in/ada"
COLUMNS: list[tuple[list[str] | None, bool]] = [
    # The chosen columns, and whether one of them would be empty.
    (None, True),
    (["name", "profnet_url"], True),
    (["company_profnet_url"], True),
    (["name"], False),
    (["name", "image_url"], False),
]


@pytest.mark.parametrize(("columns", "is_named"), COLUMNS, ids=str)
def test_chosen_columns_name_the_network(columns: list[str] | None, *, is_named: bool) -> None:
    """A search of chosen columns warns, too, if one of them has another network's name."""
    people = [person(1) | {"bluebook_url": URL, "image_url": "https://x.example/in/ada.png"}]
    with scripted(lambda _: result(people)) as service, connected(service) as client:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = of.search_people(columns=columns, client=client)
            assert len(service.requests) == 1
            assert columns is None or found.columns.tolist() == columns
        assert ["bluebook" in str(each.message) for each in caught] == [True] * is_named


def test_a_documented_field_is_no_network() -> None:
    """Profile URLs in a documented field, such as a picture's, name no network."""
    picture = "https://pictures.example/in/ada"
    company = {"logo_url": picture, "profnet_url": picture}
    people = [person(1) | {"image_url": picture, "company": company}]
    with scripted(lambda _: result(people)) as service, connected(service) as client:
        of.search_people(client=client)
        assert not of.check(client=client)["detail"].str.contains("has profile URLs").any()
    frame = pd.DataFrame({"email": ["ada@x.example"], "logo_url": picture, "image_url": picture})
    frame.outreach.validate()


@pytest.mark.parametrize("columns", [None, ["name", "profnet_url"]], ids=str)
def test_people_of_companies_name_the_network(columns: list[str] | None) -> None:
    """The people of a list of companies warn of another network's name, too."""
    found = person(1) | {"bluebook_url": URL, "company": {"website": "https://acme.example"}}
    accounts = pd.DataFrame({"domain": ["acme.example"]})
    with scripted(lambda _: result([found])) as service, connected(service):
        with pytest.warns(OutreachWarning, match="Pass network_name='bluebook'"):
            accounts.outreach.find_people(domain="domain", columns=columns)


FRAMES = [
    ({"bluebook_url": ["https://bluebook.example/in/ada"]}, True),
    ({"bluebook_url": ["bluebook.example/in/ada", None], "profnet_url": [None, None]}, True),
    ({"bluebook_url": ["https://x.example/in/ada"], "profnet_url": ["https://x.example/in/a"]}, 0),
    ({"photo_url": ["https://x.example/photos/in/ada"]}, False),
    ({"image_url": ["https://x.example/in/ada"], "company_logo_url": "x.example/in/a"}, False),
    ({"bluebook_url": [None]}, False),
]


@pytest.mark.parametrize(("columns", "is_named"), FRAMES, ids=str)
def test_a_plan_names_the_column_of_profile_urls(columns: dict[str, Any], is_named: bool) -> None:
    """Profile URLs in another network's column are named if `profnet_url` has none."""
    frame = pd.DataFrame(columns)
    with_emails = frame.assign(email=[f"lead{row}@x.example" for row in range(len(frame))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with_emails.outreach.validate()
        with_emails.outreach.validate(profnet_url=None)
    texts = [str(one.message) for one in caught]
    assert [text for text in texts if "profnet_url='bluebook_url'" in text] == texts
    assert len(texts) == is_named
    if is_named and "profnet_url" not in columns:
        with pytest.raises(InvalidInputError, match="Pass a column: profnet_url='bluebook_url'"):
            frame.outreach.validate()
