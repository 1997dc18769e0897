"""Filters are checked before any request, against the interface's tables, and can be saved."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import check_id, check_ids, check_optional_choice, check_text
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import check_filters
from tests.filter_values import good_value


def test_wrong_types_are_an_error() -> None:
    """Text for a list, a list for text, 1 for True, and filters without names are errors."""
    for filters in (["person_name"], "person_name", 5):
        with pytest.raises(InvalidInputError, match="dict"):
            check_filters(filters)
    table = pd.DataFrame({"a": ["a"]})
    for known in spec.FILTERS:
        wrong: dict[str, list[Any]] = {
            "string": [["some text"], True, ""],
            "boolean": ["true", 1, ["true"]],
            "array": ["some text", True, [], [""], [None], [5], ["some text", float("nan")]],
        }
        for value in (5, 1.5, {"a": 1}, b"a", table, pd.NA, *wrong[known.type]):
            with pytest.raises(InvalidInputError, match=known.name):
                check_filters({known.name: value})


@pytest.mark.parametrize(
    ("known", "value"),
    [
        *((known, "not-a-uuid") for known in spec.FILTERS if known.format == "uuid"),
        *((known, uuid.UUID(int=7).hex) for known in spec.FILTERS if known.format == "uuid"),
        *((known, "acme example") for known in spec.FILTERS if known.format == "domain"),
        *((known, "https://acme/") for known in spec.FILTERS if known.format == "domain"),
    ],
    ids=lambda value: value.name if isinstance(value, spec.Filter) else value,
)
def test_an_invalid_list_entry_is_an_error(known: spec.Filter, value: str) -> None:
    """Invalid UUIDs and email addresses as domains are errors that show the value."""
    with pytest.raises(InvalidInputError, match=f"{known.name}.*{value}"):
        check_filters({known.name: [value]})


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="string[pyarrow]"),
        pd.Series(["a", "b"], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
        pd.Index(["a", "b"]),
        np.array(["a", "b"]),
        ("a", "b"),
        {"b", "a"},
        {"a": 1, "b": 2}.keys(),
        (letter for letter in "ab"),
        pd.Series(["a", "b"], index=[7, 7]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_columns_are_lists_of_text(column: Any) -> None:
    """A text column of any dtype, an array, a set or a generator becomes a list of str."""
    values = check_filters({"company_names": column})["company_names"]
    assert values == ["a", "b"]
    assert {type(value) for value in values} == {str}


@pytest.mark.parametrize(
    "check",
    [
        lambda value: check_filters({"profnet_networks": value}),
        lambda value: check_filters({"person_name": [value]}),
        lambda value: check_filters({"person_title_exact_match": value}),
        lambda value: check_filters({"profnet_networks": {value: 1}}),
        lambda value: check_ids("emails", {value: 1}),
        lambda value: check_ids("emails", [value, None]),
        lambda value: check_text("user_email", [value]),
        lambda value: check_id("mailbox_id", [value]),
        lambda value: check_optional_choice("status", [value], ["active"]),
    ],
)
def test_messages_show_no_personal_data(check: Callable[[str], object]) -> None:
    """Error messages do not repeat a wrong value that may be personal data."""
    with pytest.raises(InvalidInputError) as caught:
        check("ada@brightforge.example")
    assert "ada" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "acme.example",
        "https://www.acme.example/about?from=mail#team",
        "http://acme.example:8080",
        "www.ACME.example",
        " acme.example. ",
        "//acme.example",
    ],
)
def test_a_web_address_is_reduced_to_its_domain(text: str) -> None:
    """Domain filters accept web addresses and reduce them to the domain without ``www.``."""
    for known in (one for one in spec.FILTERS if one.format == "domain"):
        assert check_filters({known.name: [text]}) == {known.name: ["acme.example"]}


def test_every_filter_is_loaded(tmp_path: Path) -> None:
    """A search with all filters is the same after saving and loading."""
    filters = {known.name: good_value(known) for known in spec.FILTERS}
    assert of.load_filters(of.save_filters(tmp_path / "all.json", filters)) == filters


def test_a_file_without_filters_does_not_find_everybody(tmp_path: Path) -> None:
    """A saved search without filters is an error; Notepad may save the unescaped text."""
    path = of.save_filters(tmp_path / "search.json", person_name="Žižka & Søn")
    text = path.read_text(encoding="utf-8")
    assert "Žižka & Søn" in text
    saved = json.loads(text)
    path.write_text(json.dumps(saved), encoding="utf-8-sig")
    assert of.load_filters(path) == {"person_name": "Žižka & Søn"}
    del saved["filters"]
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(of.OutreachError, match=r"search\.json .* filters takes a dict"):
        of.load_filters(path)


def test_a_failed_save_keeps_the_file(tmp_path: Path) -> None:
    """Text that cannot be encoded, or another format's extension, is an error; files are kept."""
    path = of.save_filters(tmp_path / "search.json", {"person_titles": ["CEO"]})
    with pytest.raises(of.OutreachError, match="surrogate"):
        of.save_filters(path, {"person_name": "\ud800"})
    assert of.load_filters(path) == {"person_titles": ["CEO"]}
    for name in ("people.parquet", "people.csv", "people.JSON.gz"):
        (tmp_path / name).write_bytes(b"people")
        with pytest.raises(of.OutreachError, match=r"ends in \.json"):
            of.save_filters(tmp_path / name, {"person_name": "Ada"})
        assert (tmp_path / name).read_bytes() == b"people"


def test_filters_are_saved_as_they_are_searched_with(tmp_path: Path) -> None:
    """Keyword filters are saved together with those of a dict or file, and override them."""
    path = of.save_filters(tmp_path / "a.json", person_seniorities=["vp"], person_name="Ada")
    changed = of.save_filters(tmp_path / "b.json", path, person_seniorities=("cxo",))
    assert of.load_filters(path) == {"person_name": "Ada", "person_seniorities": ["vp"]}
    assert of.load_filters(changed) == {"person_name": "Ada", "person_seniorities": ["cxo"]}
    with pytest.raises(of.OutreachError, match=r"mean 'person_name'\? Call"):
        of.save_filters(path, person_nam="Ada")  # type: ignore[call-arg]


def test_a_saved_search_is_searched_by_its_path(tmp_path: Path, client: Client) -> None:
    """Each function with filters accepts a file, and keyword filters override the file's."""
    path = of.save_filters(tmp_path / "vps.json", person_seniorities=["vp"])
    expected = of.count_people(person_seniorities=["vp"], client=client)
    directors = of.count_people(person_seniorities=["director"], client=client)
    assert of.count_people(path, client=client) == expected != directors
    assert of.count_people(str(path), person_seniorities=None, client=client) == expected
    assert of.count_people(path, person_seniorities=["director"], client=client) == directors
    people = of.search_people(path, limit=None, client=client)
    assert people.attrs["filters"] == {"person_seniorities": ["vp"]}
    assert of.explain_search(path, client=client).attrs["total"] == expected == len(people)
    written = of.export_people(tmp_path / "vps.csv", path, client=client)
    assert len(of.read_prospects(written)) == expected
    kept = of.snapshot_people(tmp_path / "vps", str(path), client=client)
    assert len(of.read_prospects(kept)) == expected
    companies = people.outreach.companies().head(2)
    found = companies.outreach.find_people(path, company_id="id", client=client)
    assert found.people.attrs["filters"] == {"person_seniorities": ["vp"]}
    assert of.widgets.PeopleSearch(path, client).filters == {"person_seniorities": ["vp"]}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.json", r"no such file\. Check the path\. Pass .* save_filters"),
        ("folder", "it is a folder"),
        ("people.csv", r"not a saved search: it is not valid JSON .* save_filters"),
        ("people.bin", r"not a saved search: it is not valid JSON .* save_filters"),
        ("search.json", r"cannot be used: filters takes a dict .* not str"),
        ("", "is not a path"),
    ],
)
def test_another_path_is_an_error(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    """A missing path, a folder or another kind of file is an error that says what to pass."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "people.csv").write_text("name,email\nAda,ada@x.example\n", encoding="utf-8")
    (tmp_path / "people.bin").write_bytes(b"PAR1\xff\xfe")
    path = of.save_filters("search.json", person_name="Ada")
    saved = {**json.loads(path.read_text(encoding="utf-8")), "filters": "search.json"}
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(of.OutreachError, match=words) as error:
        of.search_people(name, client=client)
    assert "ada@x.example" not in str(error.value)
