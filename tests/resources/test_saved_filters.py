"""Saved searches come back as they were, and damaged files are told in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames import spec
from tests.filter_values import good_value


def test_every_filter_comes_back(tmp_path: Path) -> None:
    """A search with all filters set is the same after saving and loading."""
    filters = {known.name: good_value(known) for known in spec.FILTERS}
    assert of.load_filters(of.save_filters(tmp_path / "all.json", filters)) == filters


def test_the_file_is_readable_text(tmp_path: Path) -> None:
    """Names in other scripts stand in the file as themselves."""
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
def test_a_damaged_file_is_told(tmp_path: Path, text: str, words: str) -> None:
    """A file that holds not a saved search is an error with its name."""
    path = tmp_path / "damaged.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(of.OutreachError, match=rf"damaged\.json .*{words}"):
        of.load_filters(path)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"filters": {"person_title": ["CEO"]}},
        {"filters": {"person_titles": "CEO"}},
        {"filters": []},
    ],
)
def test_filters_that_do_not_exist_are_told(tmp_path: Path, change: dict[str, Any]) -> None:
    """A file of another version or with unusable filters is an error with its name."""
    path = of.save_filters(tmp_path / "search.json", {"person_titles": ["CEO"]})
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}), encoding="utf-8")
    with pytest.raises(of.OutreachError, match=r"search\.json"):
        of.load_filters(path)


def test_a_failed_save_keeps_the_file(tmp_path: Path) -> None:
    """Text that no file can hold is an error, and the search that was there stays."""
    path = of.save_filters(tmp_path / "search.json", {"person_titles": ["CEO"]})
    with pytest.raises(of.OutreachError, match="surrogate"):
        of.save_filters(path, {"person_name": "\ud800"})
    assert of.load_filters(path) == {"person_titles": ["CEO"]}


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "people.JSON.gz"])
def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path, name: str) -> None:
    """A name with the ending of another format is an error, and what is there stays."""
    path = tmp_path / name
    path.write_bytes(b"people")
    with pytest.raises(of.OutreachError, match=r"ends in \.json"):
        of.save_filters(path, {"person_name": "Ada"})
    assert path.read_bytes() == b"people"


def test_the_home_folder_has_a_short_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that begins with ~ is in the user's home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    of.save_filters("~/search.json", {"person_name": "Ada"})
    assert of.load_filters("~/search.json") == {"person_name": "Ada"}
    assert (tmp_path / "search.json").exists()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """A file that is not there is an error with its name."""
    with pytest.raises(of.OutreachError, match=r"nowhere\.json cannot be read"):
        of.load_filters(tmp_path / "nowhere.json")


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    """A folder that is not there is an error with the file's name."""
    with pytest.raises(of.OutreachError, match=r"search\.json cannot be written"):
        of.save_filters(tmp_path / "nowhere" / "search.json", {})
