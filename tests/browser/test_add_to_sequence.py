"""AddToSequence in JupyterLab: only its button sends leads, and sends them once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from outreach_frames import spec
from outreach_frames.sandbox import Sandbox
from tests.browser.lab import DARK, Notebook, connect_to, expect, expect_text
from tests.leads.sending.lead_service import added
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


@contextmanager
def adding(
    notebook: Notebook, cell: str, *turns: Turn | Reply
) -> Iterator[tuple[Service, Locator]]:
    """Show the widget for the cell's frame; `turns` are the service's responses to added leads."""
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
        notebook.run(connect_to(service), cell, ADDING)
        yield service, notebook.widget


class Gate:
    """A scripted turn that adds leads; each response waits until the gate opens."""

    def __init__(self) -> None:
        self._opened = threading.Semaphore(0)
        self.arrived = threading.Semaphore(0)

    def open(self) -> None:
        """Release one more response."""
        self._opened.release()

    def __call__(self, received: Received) -> Reply:
        """Respond to a request when the gate opens."""
        self.arrived.release()
        assert self._opened.acquire(timeout=60)
        return added(received)


def posts(service: Service) -> list[Any]:
    """Return the bodies of the requests that add leads."""
    return [each.json for each in service.requests if each.method == "POST"]


def button(widget: Locator, name: str | re.Pattern[str]) -> Locator:
    """Return a button by its text."""
    return widget.get_by_role("button", name=name)


def check(widget: Locator, sequence: str = "The active one") -> None:
    """Choose a sequence and press "Check rows"."""
    widget.get_by_label("Sequence", exact=True).select_option(label=sequence)
    button(widget, "Check rows").click()


def address(listed: list[dict[str, str | None]]) -> str:
    """Return the first address in a list of the sandbox."""
    return next(one["email"] for one in listed if one["email"])


def outcomes(widget: Locator) -> list[list[str]]:
    """Return the cells of the outcome table."""
    rows = widget.get_by_label("Outcomes by row").locator("tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def test_check_sends_nothing(notebook: Notebook) -> None:
    """Invalid rows and inactive sequences are listed with reasons, and a check sends nothing."""
    with adding(notebook, MIXED) as (service, widget):
        select = widget.get_by_label("Sequence", exact=True)
        expect(select.locator("option")).to_have_count(1 + len(spec.SEQUENCE_STATUSES))
        for status, accepts in spec.SEQUENCE_STATUSES.items():
            option = select.locator("option", has_text=f"The {status} one")
            expect(option).to_be_enabled() if accepts else expect(option).to_be_disabled()
            if not accepts:
                expect_text(option, f"{status}: accepts no leads")
        expect(button(widget, "Add leads")).to_be_disabled()
        expect_text(widget, "Cannot be used: 7 (its name is int, not text")
        notebook.screenshot("add_fresh_light")

        widget.get_by_text("Data fields").click()
        widget.get_by_label("First Name", exact=True).check()
        field = widget.get_by_label("Field for First Name")
        expect(field).to_have_value("first_name")
        field.fill("First Name")
        expect_text(widget, "Use lowercase letters, digits and underscores")
        check(widget)
        expect_text(widget.get_by_role("alert"), "'First Name' is not a valid name of a data field")
        field.fill("first_name")
        check(widget)
        expect_text(widget, "2 of 5 rows will be sent, in 1 request of at most 250 leads.")
        problems = widget.get_by_label("Problems by row").locator("tbody tr").all_inner_texts()
        assert [text.split("\t")[:2] for text in problems] == [["1", "b"]] * 2 + [["3", "d"]]
        assert "no email and no profnet_url" in problems[1]
        notebook.theme(DARK)
        notebook.screenshot("add_planned_dark")
        assert posts(service) == []
        assert notebook.ask("print(adding.report)") == "None\n"


def test_501_rows_are_sent_once_in_three_requests(notebook: Notebook) -> None:
    """A double click, or a click in a second view, sends each row once, with progress."""
    gate = Gate()
    with adding(notebook, LEADS, gate, gate, gate) as (service, widget):
        check(widget)
        send = button(widget, f"Add {ROWS} leads to 'The active one'")
        send.dblclick()
        assert gate.arrived.acquire(timeout=30)
        expect(button(widget, re.compile("^Add"))).to_be_disabled()
        notebook.add("adding")
        second = notebook.page.locator(".jp-OutputArea .outreach").nth(1)
        expect_text(second, "Adding 501 leads to 'The active one'")
        expect(button(second, re.compile("^Add"))).to_be_disabled()
        gate.open()
        assert gate.arrived.acquire(timeout=30)
        for view in (widget, second):
            expect_text(view, "250 of 501")
            expect_text(view, re.compile(r"250 added, 0 skipped, 0 failed"))
        notebook.screenshot("add_sending_light")
        gate.open()
        gate.open()
        expect_text(second, "501 of 501 rows are in the sequence now.")
        expect(button(widget, "Add leads")).to_be_disabled()
        expect_text(widget, "This plan was used.")
        assert [len(body["leads"]) for body in posts(service)] == [250, 250, 1]
        sent = [lead["email"] for body in posts(service) for lead in body["leads"]]
        assert sent == [f"lead{row}@example.com" for row in range(ROWS)]
        assert notebook.ask("print(adding.report.summary().values.tolist())").strip() == (
            "[['added', 501, 0]]"
        )


def test_cancel_and_resume(notebook: Notebook) -> None:
    """Cancel stops before the next request; only the unsent rows can be sent later."""
    gate = Gate()
    with adding(notebook, LEADS, gate) as (service, widget):
        check(widget)
        button(widget, "Add 501 leads").click()
        assert gate.arrived.acquire(timeout=30)
        button(widget, "Cancel").click()
        expect_text(widget, "Cancelling: the current request is completed")
        notebook.screenshot("add_cancelling_light")
        gate.open()
        expect_text(widget, "250 of 501 rows are in the sequence now.")
        expect_text(widget, "251 are not_sent: Cancelled.")
        assert len(posts(service)) == 1
        expect(widget.get_by_label("Sequence", exact=True)).to_be_disabled()
        button(widget, "Check rows").click()
        expect_text(widget, "Excluded: 250 people recorded in this session.")
        button(widget, "Add 251 leads").click()
        expect_text(widget, "501 of 501 rows are in the sequence now.")
        sent = [lead["email"] for body in posts(service) for lead in body["leads"]]
        assert sent == [f"lead{row}@example.com" for row in range(ROWS)]
        button(widget, "Check rows").click()
        expect_text(widget, "0 of 501 rows will be sent")
        expect_text(widget, "There is nothing to send.")


def test_sending_unknown_rows_again(notebook: Notebook) -> None:
    """Unknown rows are sent again only after the user accepts the risk."""
    with adding(notebook, LEADS, hang_up()) as (service, widget):
        check(widget)
        button(widget, "Add 501 leads").click()
        expect_text(widget.get_by_label("Outcomes by status"), re.compile("unknown.*250"))
        button(widget, "Send unknown rows once more").click()
        expect_text(widget, "may be contacted twice")
        assert len(posts(service)) == 3
        notebook.screenshot("add_retry_light")
        button(widget, "Send 250 rows once more").dblclick()
        expect_text(widget, "501 of 501 rows are in the sequence now.")
        first, *_, again = posts(service)
        assert first == again


def test_a_rejected_click_keeps_the_button(notebook: Notebook) -> None:
    """A click after a change of the connection sends nothing, and the button stays enabled."""
    with adding(notebook, MIXED) as (service, widget):
        check(widget)
        send = button(widget, "Add 2 leads")
        expect(send).to_be_enabled()
        notebook.ask(connect_to(service))
        send.click()
        expect_text(widget, "The connection has changed since these rows were checked.")
        expect(send).to_be_enabled()
        assert posts(service) == []


def test_settings_reach_the_service(notebook: Notebook) -> None:
    """Overrides and active mailboxes can be ticked, inactive ones not; the code does the same."""
    with adding(notebook, MIXED) as (service, widget):
        widget.get_by_text("Overrides and mailboxes").click()
        for override in spec.OVERRIDES:
            expect(widget.get_by_label(override.name)).not_to_be_checked()
        widget.get_by_label(spec.OVERRIDES[1].name).check()
        for status in spec.MAILBOX_STATUSES[1:]:
            expect(widget.get_by_label(f"{status}@example.org", exact=False).last).to_be_disabled()
        widget.get_by_label("active@example.org", exact=True).check()
        check(widget, "The paused one")
        button(widget, "Add 2 leads to 'The paused one'").click()
        expect_text(widget, "2 of 5 rows are in the sequence now.")
        # Otherwise the code would send nobody again.
        notebook.add("from outreach_frames.leads.sending import memory\nmemory.clear()")
        notebook.add(f"{notebook.ask('print(adding.code)')}")
        first, again = posts(service)
        assert first == again
        assert first["settings"] == {
            "leads_distribution": "custom_mailboxes",
            "mailboxes": ["active@example.org"],
        }
        assert first["leads"][0]["overrides"] == {spec.OVERRIDES[1].name: True}


def test_every_row_has_its_outcome(notebook: Notebook, sandbox: Sandbox) -> None:
    """Added, skipped and failed rows appear with reasons, also in Python."""
    cells = f"""
    import pandas as pd
    df = pd.DataFrame({{"email": [
        "outcome@a-company-with-a-long-name.example.com", "n/a",
        "OUTCOME@a-company-with-a-long-name.example.com",
        {address(sandbox.exclusion_list)!r}, {address(sandbox.recently_contacted)!r},
    ]}})
    """
    notebook.run(connect_to(sandbox), "\n".join(map(str.strip, cells.splitlines())), ADDING)
    widget = notebook.widget
    notebook.ask(
        f"adding.value = {{**adding.value, 'sequence_id': {sandbox.sequence_ids['accepts_any']!r}}}"
    )
    button(widget, "Check rows").click()
    button(widget, "Add 3 leads").click()
    expect_text(widget, "1 of 5 rows are in the sequence now.")
    send = widget.locator("section").filter(has=notebook.page.get_by_text("5 Send"))
    expect(send.get_by_text("1 of 5 rows are in the sequence now.")).to_be_visible()
    shown = outcomes(widget)
    # Labels that are row numbers are not shown.
    assert [row[0] for row in shown] == ["0", "1", "2", "3", "4"]
    told = [row[2] for row in shown]
    assert told[:3] == ["added", "invalid", "duplicate_in_frame"]
    assert notebook.ask("print(adding.report.rows['status'].tolist())").strip() == str(told)
    assert "no email" in shown[1][3]
    for label in ("Outcomes by status", "Outcomes by row"):
        cells = widget.get_by_label(label).locator("td")
        wide = "cells => cells.filter(one => one.scrollWidth > one.clientWidth).length"
        assert cells.evaluate_all(wide) == 0
    assert notebook.ask("print(adding.failed[['email', 'status']].values.tolist())").strip() == (
        "[['n/a', 'invalid']]"
    )
    widget.get_by_label("Show rows with status").select_option("invalid")
    expect_text(widget.get_by_label("Outcomes by row"), "n/a")
    expect(widget.get_by_label("Outcomes by row").locator("tbody tr")).to_have_count(1)
    notebook.theme(DARK)
    notebook.screenshot("add_outcome_dark")


def test_errors_are_shown_without_the_token(notebook: Notebook, sandbox: Sandbox) -> None:
    """A 422 shows all errors, a 429 its wait; page, state and notebook have no token."""
    errors = [
        {"error_code": "mailbox_unusable", "message": "A mailbox <i>cannot</i> be used."},
        {"error_code": "something_new", "message": "Nobody knows this one."},
    ]
    slowly = json({"error": "slowly"}, 429, {"Retry-After": "3"})
    with adding(notebook, LEADS, slowly, json({"validation_errors": errors}, 422)) as (_, widget):
        check(widget)
        button(widget, "Add 501 leads").click()
        expect_text(widget, re.compile(r"waiting \d s: the service's rate limit"))
        for error in errors:
            expect_text(widget.get_by_role("alert"), f"{error['error_code']}: {error['message']}")
        expect_text(widget.get_by_label("Outcomes by status"), re.compile("rejected.*250"))
        expect_text(widget.get_by_label("Outcomes by status"), re.compile("not_sent.*251"))
        notebook.screenshot("add_refused_light")
        page = notebook.page.content()
        state = notebook.ask(
            "print(adding.get_state(), adding.notices, adding.code, adding.report)"
        )
        saved = notebook.save().read_text()
        for text in (page, state, saved):
            assert sandbox.api_key not in text
        assert "lead7@example.com" in page
        assert "lead7@example.com" not in saved


def test_a_mailbox_per_row(notebook: Notebook) -> None:
    """A column can name each row's mailbox; the plan shows the leads per mailbox."""
    owned = f"{LEADS}df['Owner'] = ['active@example.org', None, 'x@example.org'] * {ROWS // 3}"
    with adding(notebook, owned) as (service, widget):
        widget.get_by_text("Overrides and mailboxes").click()
        column = widget.get_by_label("Column with each row's mailbox")
        expect(column).to_have_value("")
        column.select_option(label="Owner")
        expect_text(widget, "Mailboxes that share the leads without a mailbox")
        expect_text(widget, "each row's own mailbox")
        check(widget)
        expect_text(widget, "active@example.org 167, the sequence's senders 167")
        expect_text(widget, "no mailbox or user called 'x@example.org'")
        notebook.screenshot("add_mailbox_light")
        button(widget, "Add 334 leads").click()
        expect_text(widget, "334 of 501 rows are in the sequence now.")
        assert "mailbox='Owner'" in notebook.ask("print(adding.code)")
        settings = [body.get("settings", {}).get("mailboxes") for body in posts(service)]
        assert settings == [["active@example.org"], None]
