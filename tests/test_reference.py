"""The reference pages have every public name, filter, column, status and command once."""

from __future__ import annotations

import argparse
import inspect
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from docs import gallery_pictures
from docs.reference_pages import pages, tasks
from outreach_frames import cli, errors, spec
from outreach_frames.accessor import OutreachAccessor
from outreach_frames.analysis.interface_columns import TABLES
from outreach_frames.client.client import Client
from outreach_frames.commands import add_leads
from outreach_frames.leads.statuses import STATUSES
from outreach_frames.tables.result_columns import OUTCOME
from outreach_frames.widgets.add_to_sequence.state import PROBLEM_WORDS
from tests.scripted import json, scripted

ROOT = Path(__file__).parents[1]
WIDGETS = {
    "PeopleSearch": "people_search",
    "AddToSequence": "add_to_sequence",
}
MODULES = ("keys", "plots", "sandbox", "widgets")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Return all pages, made once."""
    return pages()


def commands() -> Mapping[str, argparse.ArgumentParser]:
    """Return the command line's commands."""
    [found] = [
        action.choices
        for action in cli.make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return found


def section(page: str, label: str) -> str:
    """Return the part of a page between a label and the next one."""
    return page.partition(f".. _{label}:\n")[2].partition("\n.. _")[0]


def first_cells(text: str) -> list[str]:
    """Return the code in the first cells of a page's tables."""
    return re.findall(r"^ +\* - .*?``(.+?)``", text, re.MULTILINE)


def test_every_public_name_is_on_one_page(made: dict[str, str]) -> None:
    """Exactly the functions, frame methods, widgets and classes are documented, each once."""
    public = {f"of.{name}" for name in of.__all__ if name not in MODULES}
    for module in MODULES:
        public |= {f"of.{module}.{name}" for name in getattr(of, module).__all__}
    public |= {f"df.outreach.{name}" for name in vars(OutreachAccessor) if name[0] != "_"}
    entries = re.compile(r"^\.\. py:(?:function|class|data|exception):: ([\w.]+)", re.MULTILINE)
    found = Counter(name for page in made.values() for name in entries.findall(page))
    returned = {name for name in tasks.RESULTS if "." not in name}
    returned |= {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OutreachError | Warning)
    }
    returned -= {"OutreachError", "OutreachWarning"}
    assert found == Counter(public | returned)
    assert first_cells(made["sandbox"]) == list(of.sandbox.FAULT_KINDS)


def test_shown_members_are_public_and_documented(made: dict[str, str]) -> None:
    """A result's page has its public methods and properties."""
    for name, members in (
        *((name, result.members) for name, result in tasks.RESULTS.items()),
        *tasks.MEMBERS.items(),
    ):
        [page] = [page for page in made.values() if f".. py:class:: {name}" in page]
        for member in members:
            assert re.search(rf"^   \.\. py:(method|property):: {member}\b", page, re.MULTILINE)


def test_every_entry_is_complete(made: dict[str, str]) -> None:
    """Each entry has parameters, result, errors and an example."""
    for name in (name for task in tasks.TASKS for name in task.names if name not in tasks.TYPES):
        documented = tasks.thing(name)
        takes = set(inspect.signature(documented).parameters) - {"self", *spec.FILTERS_BY_NAME}
        if name in tasks.RESULTS:
            wanted, takes = {":Attributes:"}, set()
        elif inspect.isclass(documented):
            wanted = {".. rubric:: Examples"}
        else:
            wanted = {":Returns:", ".. rubric:: Examples"}
            wanted |= {":Parameters:", ":Raises:"} if takes else set()
            if name == "df.outreach.brief":  # accepts every frame
                wanted.discard(":Raises:")
        head = re.compile(rf"^\.\. py:\w+:: {name}\b", re.MULTILINE)
        [page] = [page for page in made.values() if head.search(page)]
        entry = head.split(page)[1].partition("\n.. py:")[0]
        assert {one for one in wanted if one not in entry} == set(), name
        for parameter in takes:
            assert re.search(rf"\*\*[^:\n]*\b{parameter}\b.*\*\*", entry), (name, parameter)


def test_links_are_rendered(made: dict[str, str]) -> None:
    """Links to other entries use single backticks, as Sphinx requires."""
    assert [name for name, page in made.items() if re.search(r":py:\w+:``", page)] == []
    assert ":py:obj:`InvalidInputError <InvalidInputError>`" in made["people"]


def test_every_filter_is_documented_once(made: dict[str, str]) -> None:
    """The page about filters has each filter once, with known values and its opposite."""
    before = made["filters"].partition(".. _job-functions:")[0]
    assert Counter(first_cells(before)) == Counter(list(spec.FILTERS_BY_NAME))
    for one in spec.FILTERS:
        row = before.partition(f"* - ``{one.name}``")[2].partition("\n   * -")[0]
        assert one.excludes in row
        assert all(value in row for value in one.suggestions) or "job-functions" in row
    functions = section(made["filters"], "job-functions")
    assert first_cells(functions) == list(spec.JOB_FUNCTIONS)


def test_every_column_is_documented_once(made: dict[str, str]) -> None:
    """The page about columns has each column of every table once, with its dtype."""
    for table in TABLES:
        text = section(made["columns"], f"columns-{table.replace('_', '-')}")
        found = re.findall(r"^   \* - ``(.+)``\n     - ``(.+)``", text, re.MULTILINE)
        known = of.columns(table)[["name", "dtype"]].itertuples(index=False, name=None)
        assert Counter(found) == Counter(known), table


def test_every_status_is_documented_once(made: dict[str, str]) -> None:
    """The page about statuses has those of rows, of sequences and of accounts."""
    assert first_cells(section(made["statuses"], "row-statuses")) == list(STATUSES)
    sequences = section(made["statuses"], "sequence-statuses")
    assert first_cells(sequences) == list(spec.SEQUENCE_STATUSES)
    accounts = first_cells(section(made["statuses"], "account-statuses"))
    assert ", ".join(accounts) in of.columns("accounts")["meaning"].iloc[0].replace(" or ", ", ")


def test_every_problem_of_a_row_is_documented_once(made: dict[str, str]) -> None:
    """The page about statuses has each problem code and each outcome of a limit."""
    url = "https://profnet.example/in/"
    frame = pd.DataFrame(
        {
            "email": ["ben@", "n/a", None, None, "all@x.example", "all@x.example", "c@x.example"],
            "profnet_url": [
                f"{url}ada",
                "no address",
                None,
                b"bytes",
                f"{url}b",
                f"{url}c",
                "x.example/us",
            ],
            "note": ["x" * 2_000, "[note]", None, "tbd", "a", "b", "c"],
            "year": "#N/A",
            "opt_out": [*[False] * 6, True],
            "owner": ["nobody@x.example", "off@x.example", "two@x.example", "a@", None, None, None],
        }
    )
    boxes = [
        {"id": name, "email": f"{name}@x.example", "status": status, "user": {"id": name, **user}}
        for name, status in (("off", "inactive"), ("a", "active"))
        for user in [{"email": "two@x.example"}]
    ]
    listing = json({"mailboxes": boxes, "sequences": [], "_links": {}})
    with scripted([listing] * 2) as service, Client(service.url, "token", cache=None) as client:
        plan = frame.outreach.plan(
            "s1",
            data=["note", "year"],
            require=["note"],
            mailbox="owner",
            client=client,
        )
    codes = plan.problems["code"]
    assert Counter(first_cells(section(made["statuses"], "problem-codes"))) == Counter(set(codes))
    assert PROBLEM_WORDS.keys() == {*codes}
    outcomes = first_cells(section(made["statuses"], "limit-outcomes"))
    assert ", ".join(outcomes) == OUTCOME.note.replace(" or ", ", ")


def test_every_error_is_documented_once(made: dict[str, str]) -> None:
    """The page about errors has each exception with advice, and each code of the service."""
    before = made["errors"].partition(".. _error-codes:")[0]
    classes = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.OutreachError)
    ]
    assert Counter(first_cells(before)) == Counter(classes)
    codes = section(made["errors"], "error-codes")
    assert first_cells(codes) == list(spec.ADD_LEADS_ERRORS)


def test_every_exit_code_is_documented_once(made: dict[str, str]) -> None:
    """The page about exit codes has each exit code of a command."""
    assert first_cells(made["exit-codes"]) == [str(code) for code in cli.EXIT_CODES]
    named = {
        value
        for module in (cli, add_leads)
        for name, value in vars(module).items()
        if name.startswith("EXIT_") and isinstance(value, int)
    }
    assert set(cli.EXIT_CODES) == named


def test_every_command_is_documented_once(made: dict[str, str]) -> None:
    """Each command is documented with its options except filters."""
    found = re.findall(r"^\.\. _command-(?!line)(.+):$", made["command-line"], re.MULTILINE)
    assert found == list(commands())
    filters = {f"--{name.replace('_', '-')}" for name in spec.FILTERS_BY_NAME}
    for name, command in commands().items():
        text = section(made["command-line"], f"command-{name}")
        options = {one for one in command._option_string_actions if not one.startswith("--no-")}
        for option in options - filters - {"-h", "--help"}:
            found = re.findall(rf"^\.\. option:: {option}\b(?!-).*\n\n   \w", text, re.MULTILINE)
            assert len(found) == 1, option


def test_every_plot_is_in_the_gallery() -> None:
    """Each plot has a page with pictures for both themes, and the overview links to it."""
    overview = (gallery_pictures.FOLDER / "index.md").read_text(encoding="utf-8")
    plots = set()
    for page in gallery_pictures.pages():
        text = page.read_text(encoding="utf-8")
        plots |= set(re.findall(r"^of\.plots\.(\w+)\(", text, re.MULTILINE))
        for theme in gallery_pictures.STYLES:
            assert f"](made/{page.stem}_{theme}.png){{.only-{theme}}}" in text, page
            assert f"](made/{page.stem}_small_{theme}.png){{.only-{theme}}}" in overview, page
        assert f":link: {page.stem}\n" in overview
    assert plots == set(of.plots.__all__)


def test_llms_txt_is_correct() -> None:
    """llms.txt names only existing functions, methods, commands and pages, and all exit codes."""
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    documented = {name for task in tasks.TASKS for name in task.names} | {"of.OutreachError"}
    names = re.findall(r"`((?:of|df\.outreach)\.[\w.]+)", text)
    assert len(names) > 30
    assert set(names) - documented == set()
    assert set(re.findall(r"`outreach-frames ([\w-]+)`", text)) <= set(commands())
    assert ", ".join(f"{code} {says}" for code, says in cli.EXIT_CODES.items()) in text
    assert f"{len(spec.FILTERS)} filters" in text
    pages = re.findall(r"\]\((.+?)\)", text)
    assert len(pages) > 10
    assert [page for page in pages if not (ROOT / page).exists()] == []


def test_every_widget_has_a_page() -> None:
    """A widget's page names each button and shows each of its pictures in both themes."""
    for widget, package in WIDGETS.items():
        page = (ROOT / f"docs/widgets/{package.replace('_', '-')}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {widget}\n")
        folder = ROOT / "outreach_frames/widgets" / package
        scripts = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.js"))
        labels = set(re.findall(r"\bbutton\(\s*\"(\w[^\"]+)\"", scripts)) | {"Copy code"}
        assert len(labels) > 3
        assert {label for label in labels if f"*{label}*" not in page} == set()
        kept = {path.name for path in (ROOT / "docs/pictures").glob(f"{package}_*")}
        missing = kept - set(re.findall(r"pictures/(\w+\.png)", page))
        # The tutorial shows this picture, with a different frame.
        assert {name for name in missing if "_people_" not in name} == set()
    assert set(WIDGETS) == set(of.widgets.__all__)
