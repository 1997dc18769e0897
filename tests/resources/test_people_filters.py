"""Editors, type checkers and `help` show the filters of each function that accepts them."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accessor import OutreachAccessor
from tests import people_filters

FUNCTIONS = (
    of.search_people,
    of.count_people,
    of.explain_search,
    of.export_people,
    of.snapshot_people,
    of.save_filters,
)
CODE = """\
import pandas as pd
import outreach_frames as of

of.search_people(person_senioritys=["vp"])
of.count_people(person_senioritys=["vp"])
of.explain_search(person_senioritys=["vp"])
of.export_people("people.csv", person_senioritys=["vp"])
of.snapshot_people("people", person_senioritys=["vp"])
of.save_filters("search.json", person_senioritys=["vp"])
of.outreach(pd.DataFrame()).find_people(person_senioritys=["vp"])
of.outreach(pd.DataFrame()).find_people(company_names=["Acme"])
of.search_people(person_titles="CEO")
of.search_people(person_titles=[1])
of.search_people(person_name=["Ada"])
filters: of.PeopleFilters = {"person_titles": pd.Series(["CEO"]), "company_ids": {"a"}}
of.search_people("search.json", limit=5, person_seniorities=("vp",), person_name=None)
of.search_people(filters)
of.search_people(**filters)
"""
FAULTS = set(range(4, 15))  # expected error lines; the last four calls are valid


def filters_of(function: Callable[..., Any]) -> list[str]:
    """Return the filters in a function's signature."""
    return [name for name in inspect.signature(function).parameters if name in spec.FILTERS_BY_NAME]


def test_the_types_are_those_of_the_interface() -> None:
    """The module with the filter types is up to date with its generator."""
    kept = people_filters.MODULE.read_text(encoding="utf-8")
    assert kept == people_filters.module_text(), "run `python -m tests.people_filters`"
    assert typing.get_type_hints(of.PeopleFilters).keys() == spec.FILTERS_BY_NAME.keys()
    assert of.PeopleFilters.__required_keys__ == frozenset()


def test_the_signatures_have_the_filters() -> None:
    """A signature lists the filters after the other arguments, in the interface's order."""
    for function in FUNCTIONS:
        *names, last = inspect.signature(function).parameters
        assert filters_of(function) == [one.name for one in spec.FILTERS] == names[-30:]
        assert last == "fields"
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
        assert typing.get_type_hints(function).keys() >= {"filters", "fields"}
    taken = inspect.signature(of.search_people).parameters["person_titles"]
    assert str(taken) == "person_titles: 'ListOfText | None' = None"
    assert taken.kind is inspect.Parameter.KEYWORD_ONLY


def test_find_people_has_no_company_filters() -> None:
    """find_people's signature has no company filters, because the table names the companies."""
    companies = {"company_ids", "company_names", "company_domains", "company_profnet_urls"}
    shown = filters_of(OutreachAccessor.find_people)
    assert shown == [one.name for one in spec.FILTERS if one.name not in companies]


@pytest.fixture
def kernel() -> Iterator[Any]:
    """Start a Jupyter kernel."""
    from jupyter_client.manager import start_new_kernel

    manager, kernel = start_new_kernel(kernel_name="python3")
    yield kernel
    kernel.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.slow
def test_a_kernel_completes_and_shows_filters(kernel: Any) -> None:
    """Tab completes a filter's name, with or without Jedi, and Shift-Tab shows all filters."""
    kernel.execute("import outreach_frames as of, pandas; df = pandas.DataFrame()", reply=True)

    def completions(code: str) -> list[str]:
        found = kernel.complete(code, reply=True, timeout=100)["content"]["matches"]
        return [str(match) for match in found]

    for jedi in (True, False):
        kernel.execute(f"get_ipython().Completer.use_jedi = {jedi}", reply=True)
        for name in (*(f"of.{one.__name__}" for one in FUNCTIONS), "df.outreach.find_people"):
            assert completions(f"{name}(person_s") == ["person_seniorities="], (name, jedi)
        assert completions("df.outreach.find_people(company_na") == []
    shown = kernel.inspect("of.search_people(", reply=True, timeout=100)["content"]["data"]
    assert all(f"\n    {one.name}: " in shown["text/plain"] for one in spec.FILTERS)


@pytest.mark.slow
def test_type_checkers_find_misspelled_filters(tmp_path: Path) -> None:
    """Type checkers report a misspelled filter or a value of a wrong type on its line."""
    (tmp_path / "search.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "outreach_frames").symlink_to(Path(of.__file__).parent)
    options = ("--strict", "--no-error-summary", "--hide-error-context")
    command = (sys.executable, "-m", "mypy", *options, "search.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "error:" in line and "search.py" in line]
    assert {int(line.split("search.py:")[1].split(":")[0]) for line in errors} == FAULTS, done
