"""Progress bars: their counts, and when they are shown."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from tests import forked
from tests.resources.search_service import service_of
from tests.scripted import Received, Reply, delayed, respond, scripted

FILTERS: Any = {"person_seniorities": ["vp", "director"]}


def bars(folder: Path) -> Iterator[tuple[str, str, str, Callable[..., object]]]:
    """Yield each bar's description, final count and unit, and the function that shows it."""
    people = of.search_people(limit=None)
    found = of.count_people(FILTERS)
    page = {"limit": None, "page_size": 5}
    split = {"limit": None, "split_by": "person_seniorities"}
    by = {"by": "person_seniorities"}
    new = (folder / f"{number}.csv" for number in count())
    every = f"{found}/{found}"
    yield "people", "5/5", "people", lambda **o: of.search_people(limit=5, page_size=5, **o)
    yield "people", every, "people", lambda **o: of.search_people(FILTERS, **page, **o)
    yield "people", every, "people", lambda **o: of.search_people(FILTERS, **split, **o)
    yield "people", every, "people", lambda **o: of.export_people(next(new), FILTERS, **o)
    yield "people", every, "people", lambda **o: of.snapshot_people(next(new), FILTERS, **o)
    yield "Counting", "3/3", "searches", lambda **o: of.count_people(FILTERS, **by, **o)
    yield "Counting", "4/4", "searches", lambda **o: of.explain_search(FILTERS, **o)
    yield "sequences", f"{len(of.sequences())} sequences", "sequences", of.sequences
    boxes = of.mailboxes()["id"]
    yield "mailboxes", f"{len(boxes)} mailboxes", "mailboxes", of.mailboxes
    every = f"{len(boxes)}/{len(boxes)}"
    yield "limits", every, "mailboxes", lambda **o: of.set_daily_email_limit(boxes, 30, **o)
    leads = pd.DataFrame({"email": [f"lead{number}@x.example" for number in range(5)]})
    yield "contacts", "5/5", "contacts", lambda **o: of.contacts(emails=leads["email"], **o)
    firms = people.drop_duplicates("company_name").head(3).outreach
    company = {"company_name": "company_name"}
    yield "companies", "3/3", "companies", lambda **o: firms.find_people(**company, **o)
    send = leads.outreach.add_to_sequence
    active = of.sequences(status="active")["id"][0]
    options = {"chunk_size": 2, "journal": folder / "journal"}
    yield "Adding", "5/5", "leads", lambda **o: send(active, **options, **o)
    few = people[["id", "name", "title"]]
    yield "comparing", "2/2", "columns", lambda **o: of.compare_people(few, few, **o)
    yield "4 columns", "8/8", "steps", lambda **o: few.outreach.to_excel(folder / "x.xlsx", **o)


@pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning")
def test_each_bar_ends_at_its_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With progress=True each bar stays and ends at its total; otherwise no bar is shown."""
    with of.sandbox.serve(people=40, seed=1) as running:
        with of.connect(running.url, running.api_key, cache=None):
            for description, counted, unit, call in bars(tmp_path):
                for progress in (True, False, None):
                    call(progress=progress)
                    shown = capsys.readouterr().err
                    last = rf"{description}:.* {counted} \[.* {unit}(/s)?(,.*)?\] *\n"
                    assert re.fullmatch(last if progress else "", shown.rpartition("\r")[2]), shown


def test_a_terminal_shows_a_bar_after_a_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default a terminal shows a bar after a delay and clears it at the end."""

    def slow(received: Received) -> Reply:
        return delayed(0.6, service_of(3)(received))

    def shown(*options: str) -> str:
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert main(["snapshot", str(tmp_path / f"people{len(options)}"), *options]) == 0
        return sys.stderr.getvalue()

    with scripted(slow) as service:
        monkeypatch.setenv(BASE_URL_VARIABLE, service.url)
        monkeypatch.setenv(API_KEY_VARIABLE, "token")
        *lines, cleared, message = shown().split("\r")
        assert any("3/3" in line for line in lines)
        assert cleared.strip() == ""
        assert message.startswith("3 people written to ")
        assert message.count("\n") == 1
        assert shown("--quiet") == ""


def test_a_short_run_shows_no_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook that is written at once shows no bar in a terminal."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    pd.DataFrame({"name": ["Ada"]}).outreach.to_excel(tmp_path / "people.xlsx")
    assert sys.stderr.getvalue() == ""


@pytest.mark.long
def test_a_notebook_keeps_no_finished_bar() -> None:
    """In a kernel a bar is one output, which the end or an error empties in its place."""
    code = (
        "import outreach_frames as of\n"
        "of.connect({!r}, 'token', cache=None)\n"
        "print(len(of.search_people(limit=20, progress=True)))\n"
        "of.search_people(limit=30, page_size=10, progress=True)\n"
    )
    pages = service_of(30)

    def failing(received: Received) -> Reply:
        return respond(status=400) if received.json["page"] == 3 else pages(received)

    with scripted(failing) as service:
        cell = nbformat.v4.new_code_cell(code.format(service.url))
        nbclient.NotebookClient(
            nbformat.v4.new_notebook(cells=[cell]), allow_errors=True, kernel_name="python3"
        ).execute()
    shown = [output.get("data", output.get("text", output.get("ename"))) for output in cell.outputs]
    assert shown == [{}, "20\n", {}, "BadRequestError"]


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def test_a_bar_that_fails_does_not_stop_the_work() -> None:
    """If tqdm cannot format the bar, as after a wrong environment variable, no bar is shown."""
    code = (
        "import sys, outreach_frames as of\n"
        "of.connect(sys.argv[1], 'token', cache=None)\n"
        "print(len(of.search_people(limit=20, progress=True)))\n"
    )
    with scripted(service_of(20)) as service:
        environment = {**os.environ, "TQDM_BAR_FORMAT": "{unknown}"}
        done = forked.run(code, service.url, env=environment)
    assert (done.stdout, done.returncode) == ("20\n", 0), done.stderr
