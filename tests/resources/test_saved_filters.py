"""Saved searches are loaded unchanged, and damaged files are clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from tests.filter_values import good_value


def test_every_filter_is_loaded(tmp_path: Path) -> None:
    """A search with all filters is the same after saving and loading."""
    filters = {known.name: good_value(known) for known in spec.FILTERS}
    assert of.load_filters(of.save_filters(tmp_path / "all.json", filters)) == filters


def test_the_file_is_readable_text(tmp_path: Path) -> None:
    """The file contains names in other scripts unescaped."""
    path = of.save_filters(tmp_path / "names.json", {"company_names": ["Žižka & Søn"]})
    assert "Žižka & Søn" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged"),
        ("{", "damaged"),
        ("[" * 100_000, "damaged"),
        ("null", "not a saved search"),
        ("[]", "not a saved search"),
        ('{"filters": {}}', "not a saved search"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    """A file that is not a saved search is an error with its name."""
    path = tmp_path / "damaged.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(of.OutreachError, match=rf"damaged\.json .*{words}"):
        of.load_filters(path)


def test_a_file_without_filters_does_not_find_everybody(tmp_path: Path) -> None:
    """A saved search without filters is an error; one saved by Notepad is read."""
    path = of.save_filters(tmp_path / "search.json", person_name="Ada")
    saved = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(saved), encoding="utf-8-sig")
    assert of.load_filters(path) == {"person_name": "Ada"}
    del saved["filters"]
    path.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(of.OutreachError, match=r"search\.json .* filters takes a dict"):
        of.load_filters(path)


def test_a_failed_save_keeps_the_file(tmp_path: Path) -> None:
    """Text that cannot be encoded is an error, and the previous file is kept."""
    path = of.save_filters(tmp_path / "search.json", {"person_titles": ["CEO"]})
    with pytest.raises(of.OutreachError, match="surrogate"):
        of.save_filters(path, {"person_name": "\ud800"})
    assert of.load_filters(path) == {"person_titles": ["CEO"]}


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "people.JSON.gz"])
def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, name: str) -> None:
    """A name with another format's extension is an error, and the existing file is kept."""
    path = tmp_path / name
    path.write_bytes(b"people")
    with pytest.raises(of.OutreachError, match=r"ends in \.json"):
        of.save_filters(path, {"person_name": "Ada"})
    assert path.read_bytes() == b"people"


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
        ("nowhere.json", r"no such file\. Check the path\. Pass .* save_filters\(\)"),
        ("folder", "it is a folder"),
        ("people.csv", r"not a saved search: it is not valid JSON .* save_filters\(\)"),
        ("people.bin", r"not a saved search: it is not valid JSON .* save_filters\(\)"),
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
