"""AddToSequence as people use it, in JupyterLab: nothing is sent but by its button, and once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.browser.lab import DARK, Notebook, connect_to
from tests.scripted import Received, Reply, Service, hang_up, json, scripted

if TYPE_CHECKING:
    from playwright.sync_api import Locator

ADDING = "adding = of.widgets.AddToSequence(df)\nadding"
ROWS = 501
LEADS = f"""
import pandas as pd
df = pd.DataFrame({{"E-Mail": [f"lead{{row}}@example.com" for row in range({ROWS})]}})
"""
MIXED = """
import pandas as pd
df = pd.DataFrame(
    {
        "E-Mail": ["ada@example.com", "n/a", "ADA@example.com", "bo@", "cy@example.com"],
        "Profile URL": [None, None, None, None, "profnet.example/in/cy"],
        "First Name": ["Ada", "Nobody", "Ada", "Bo", "<b>Cy</b>"],
        7: range(5),
    },
    index=list("abcde"),
)
"""
Turn = Callable[[Received], Reply]


def added(received: Received) -> Reply:
    """Answer that all leads of a request were added."""
    sent = len(received.json["leads"])
    return json({"total": sent, "total_added_to_sequence": sent})


@contextmanager
def serving(*turns: Turn | Reply) -> Iterator[Service]:
    """Serve a sequence of each status and two mailboxes; requests that add are answered in turn."""
    rest = list(turns)

    def turn(received: Received) -> Reply:
        if received.path == "/sequences":
            found = [
                {"id": f"id-{status}", "name": f"The {status} one", "status": status}
                for status in spec.SEQUENCE_STATUSES
            ]
            return json({"sequences": found, "_links": {}})
        if received.path == "/mailboxes":
            found = [
                {"id": status, "email": f"{status}@example.org", "status": status}
                for status in spec.MAILBOX_STATUSES
            ]
            return json({"mailboxes": found, "_links": {}})
        reply = rest.pop(0) if rest else added
        return reply if isinstance(reply, Reply) else reply(received)

    with scripted(turn) as service:
        yield service


class Gate:
    """Answers that leads were added, each only once it is opened."""

    def __init__(self) -> None:
        self._opened = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)

    def open(self) -> None:
        """Let one more request be answered."""
        self._opened.release()

    def __call__(self, received: Received) -> Reply:
        self.arrived.release()
        assert self._opened.acquire(timeout=60)
        return added(received)


def posts(service: Service) -> list[Any]:
    """Return the bodies of the requests that add leads."""
    return [each.json for each in service.requests if each.method == "POST"]


def expect_text(locator: Locator, text: str | re.Pattern[str]) -> None:
    """Wait until an element shows a text."""
    from playwright.sync_api import expect

    expect(locator).to_contain_text(text)


def button(widget: Locator, name: str | re.Pattern[str]) -> Locator:
    """Return a button by what it says."""
    return widget.get_by_role("button", name=name)


def check(widget: Locator, sequence: str = "The active one") -> None:
    """Choose a sequence and check the rows."""
    widget.get_by_label("Sequence", exact=True).select_option(label=sequence)
    button(widget, "Check rows").click()


def outcomes(widget: Locator) -> list[list[str]]:
    """Return the cells of the table of outcomes."""
    rows = widget.get_by_label("Outcomes by row").locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def test_check_and_dry_run_send_nothing(notebook: Notebook) -> None:
    """What cannot be chosen or sent is listed with its reason, and a dry run sends nothing."""
    from playwright.sync_api import expect

    with serving() as service:
        notebook.run(connect_to(service), MIXED, ADDING)
        widget = notebook.widget
        select = widget.get_by_label("Sequence", exact=True)
        expect(select.locator("option")).to_have_count(1 + len(spec.SEQUENCE_STATUSES))
        for status, accepts in spec.SEQUENCE_STATUSES.items():
            option = select.locator("option", has_text=f"The {status} one")
            expect(option).to_be_enabled() if accepts else expect(option).to_be_disabled()
            if not accepts:
                expect_text(option, f"{status}: takes no leads")
        expect(button(widget, "Add leads")).to_be_disabled()
        expect_text(widget, "Cannot be used: 7 (its name is no text")
        notebook.screenshot("add_fresh_light")

        widget.get_by_text("Data fields").click()
        widget.get_by_label("First Name", exact=True).check()
        field = widget.get_by_label("Field for First Name")
        expect(field).to_have_value("first_name")
        field.fill("First Name")
        expect_text(widget, "Use lowercase letters, digits and underscores")
        check(widget)
        expect_text(widget.get_by_role("alert"), "'First Name' cannot be the name of a field")
        field.fill("first_name")
        check(widget)
        expect_text(widget, "2 of 5 rows will be sent, in 1 request.")
        problems = widget.get_by_label("Problems by row").locator("tbody tr").all_inner_texts()
        assert [text.split("\t")[:2] for text in problems] == [["1", "b"]] * 2 + [["3", "d"]]
        assert "no email and no profnet_url" in problems[1]
        notebook.theme(DARK)
        notebook.screenshot("add_planned_dark")
        button(widget, "Dry run").click()
        expect_text(widget, "Dry run: nothing was sent.")
        assert [row[3] for row in outcomes(widget)] == [
            "would be sent",
            "invalid",
            "duplicate_in_frame",
            "invalid",
            "would be sent",
        ]
        notebook.screenshot("add_dry_run_dark")
        assert posts(service) == []
        assert notebook.ask("print(adding.report)") == "None\n"
