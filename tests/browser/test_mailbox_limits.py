"""MailboxLimits in JupyterLab, by mouse and by keyboard."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import outreach_frames as of
from outreach_frames.sandbox import Sandbox
from tests.browser.lab import DARK, Notebook, connect_to
from tests.scripted import Received, Reply, hang_up, json, scripted

if TYPE_CHECKING:
    from playwright.sync_api import Locator

LIMITS = "limits = of.widgets.MailboxLimits()\nlimits"
NAMES = ("ada", "bob", "cyd")


@pytest.fixture
def account() -> Iterator[Sandbox]:
    """Start a separate sandbox, whose limits a test may change."""
    with of.sandbox.serve(people=20, seed=1) as running:
        yield running


@pytest.fixture
def connecting(account: Sandbox, tmp_path: Path) -> str:
    """Return a cell that connects to that sandbox, with a token that is not in the notebook."""
    token = tmp_path / "token"
    token.write_text(account.api_key, encoding="utf-8")
    read = f"pathlib.Path({str(token)!r}).read_text()"
    return (
        "import outreach_frames as of, pathlib\n"
        f"client = of.connect({account.url!r}, {read}, cache=None)"
    )


def limits_by_address(account: Sandbox) -> dict[str, int]:
    """Return the limits that the service reports now, read without the widget."""
    with of.connect(account.url, account.api_key, cache=None):
        frame = of.mailboxes()
    return dict(zip(frame["email"], frame["daily_email_limit"], strict=True))


def mailbox(name: str, limit: int = 40) -> dict[str, Any]:
    """Return a mailbox as the service returns it."""
    return {
        "id": name,
        "email": f"{name}@example.com",
        "email_provider": "google",
        "daily_email_limit": limit,
        "status": "active",
    }


def listing() -> Reply:
    """Respond with the account's three mailboxes."""
    return json({"mailboxes": [mailbox(name) for name in NAMES], "_links": {}})


def accepted(received: Received) -> Reply:
    """Respond with the mailbox and its new limit."""
    return json(mailbox(received.path.rpartition("/")[2], received.json["daily_email_limit"]))


def set_all(widget: Locator, limit: int) -> None:
    """Select every mailbox, and set one new limit for all."""
    widget.get_by_label("Select all shown").check()
    widget.get_by_label("Set selected to").fill(str(limit))
    widget.get_by_role("button", name="Set", exact=True).click()


def row_of(widget: Locator, name: str) -> Locator:
    """Return both table rows of a mailbox: its own, and that of its result."""
    return widget.get_by_role("rowgroup").filter(has_text=f"{name}@example.com")


def expect_text(locator: Locator, text: str | re.Pattern[str]) -> None:
    """Wait until an element shows this text."""
    from playwright.sync_api import expect

    expect(locator).to_contain_text(text)


def test_a_changed_limit_reaches_the_service(
    notebook: Notebook, account: Sandbox, connecting: str
) -> None:
    """The change is shown before it is sent; then the row, the service and Python agree."""
    before = limits_by_address(account)
    address = next(iter(before))
    notebook.run(connecting, LIMITS)
    widget = notebook.widget
    widget.get_by_label(f"New limit of {address}").fill(str(before[address] + 21))
    expect_text(
        widget.get_by_role("list", name="Pending changes"),
        f"{address}: {before[address]} → {before[address] + 21}",
    )
    assert limits_by_address(account) == before
    widget.get_by_role("button", name="Change 1 mailbox", exact=True).click()
    row = widget.get_by_role("rowgroup").filter(has_text=address)
    expect_text(row, f"Changed: the service now reports {before[address] + 21}.")
    assert limits_by_address(account) == before | {address: before[address] + 21}
    assert notebook.ask("print(limits.results['status'].tolist())") == "['changed']\n"
    assert notebook.ask("print(limits.changes.empty, limits.value)") == "True {}\n"


def test_all_by_keyboard(notebook: Notebook, account: Sandbox, connecting: str) -> None:
    """Filter, select, set and send work by keyboard; only selected mailboxes change."""
    before = limits_by_address(account)
    chosen = [address for address in before if address.startswith("marta")]
    notebook.run(connecting, LIMITS)
    widget, keyboard = notebook.widget, notebook.page.keyboard
    widget.get_by_role("row").filter(has_text=chosen[0]).wait_for()
    widget.get_by_role("searchbox", name="Address").focus()
    keyboard.type("Marta")
    tab_to(notebook, "Select all shown")
    keyboard.press("Space")
    tab_to(notebook, "Set selected to")
    keyboard.type("77")
    keyboard.press("Enter")
    expect_text(widget, f"Change {len(chosen)} mailboxes")
    tab_to(notebook, f"Change {len(chosen)} mailboxes")
    keyboard.press("Enter")
    expect_text(widget, f"{len(chosen)} mailboxes changed.")
    assert limits_by_address(account) == before | dict.fromkeys(chosen, 77)


def tab_to(notebook: Notebook, name: str) -> None:
    """Press Tab until the element with that name has the focus."""
    for _ in range(60):
        notebook.page.keyboard.press("Tab")
        focused = notebook.page.evaluate(
            """() => {
                const { ariaLabel, textContent } = document.activeElement;
                return ariaLabel ?? textContent;
            }"""
        )
        if focused == name:
            return
    raise AssertionError(f"Tab does not lead to {name}")


def test_a_double_click_sends_once(notebook: Notebook) -> None:
    """A double click on the button sends each change once, also if some changes fail."""

    def reply(received: Received) -> Reply:
        if received.method == "GET":
            return listing()
        if received.path.endswith("bob"):
            return json({"error": "no"}, status=400)
        return accepted(received)

    with scripted(reply) as service:
        notebook.run(connect_to(service), LIMITS)
        set_all(notebook.widget, 60)
        notebook.widget.get_by_role("button", name="Change 3 mailboxes").dblclick()
        expect_text(notebook.widget, "Of 3 mailboxes: 2 changed; 1 not changed.")
        notebook.ask("import time; time.sleep(0.1)")
        sent = [(one.path, one.json) for one in service.requests if one.method == "PATCH"]
    assert sent == [(f"/mailboxes/{name}", {"daily_email_limit": 60}) for name in NAMES]


def test_each_row_has_its_own_result(notebook: Notebook) -> None:
    """A rejected change and a broken connection show errors in their rows only."""
    refused = {"validation_errors": [{"error_code": "too_high", "message": "At most 50."}]}

    def reply(received: Received) -> Reply:
        if received.method == "GET":
            return listing()
        if received.path.endswith("ada"):
            return json(refused, status=422)
        return hang_up() if received.path.endswith("bob") else accepted(received)

    with scripted(reply) as service:
        notebook.run(connect_to(service), LIMITS)
        widget = notebook.widget
        set_all(widget, 60)
        widget.get_by_role("button", name="Change 3 mailboxes").click()
        expect_text(row_of(widget, "cyd"), "Changed: the service now reports 60.")
        expect_text(row_of(widget, "ada"), "too_high: At most 50.")
        expect_text(row_of(widget, "bob"), "May have changed: press Reload")
        widget.get_by_role("button", name="Change 2 mailboxes").wait_for()
        notebook.screenshot("mailbox_limits_results")


def test_a_rejected_token_stops_the_remaining_changes(notebook: Notebook) -> None:
    """After a 401, no further change is sent, and the widget shows the reason."""

    def reply(received: Received) -> Reply:
        return listing() if received.method == "GET" else json({}, status=401)

    with scripted(reply) as service:
        notebook.run(connect_to(service), LIMITS)
        set_all(notebook.widget, 60)
        notebook.widget.get_by_role("button", name="Change 3 mailboxes").click()
        expect_text(notebook.widget.get_by_role("alert"), "401")
        expect_text(row_of(notebook.widget, "cyd"), "Not sent")
        assert [one.method for one in service.requests].count("PATCH") == 1


def test_a_wait_is_shown_and_can_be_cancelled(notebook: Notebook) -> None:
    """The widget shows a wait that the service requests; Cancel ends it, and nothing is sent."""

    def reply(received: Received) -> Reply:
        if received.method == "GET":
            return listing()
        if received.path.endswith("ada"):
            return accepted(received)
        return json({}, status=429, headers={"Retry-After": "50"})

    with scripted(reply) as service:
        notebook.run(connect_to(service), LIMITS)
        widget = notebook.widget
        set_all(widget, 60)
        widget.get_by_role("button", name="Change 3 mailboxes").click()
        expect_text(widget, re.compile("1 of 3 · The service asks to wait (50|49) s"))
        assert notebook.ask("print('the kernel answers')") == "the kernel answers\n"
        widget.get_by_role("button", name="Cancel").click()
        expect_text(widget, "Of 3 mailboxes: 1 changed; 2 not sent.")
        assert [one.path for one in service.requests].count("/mailboxes/cyd") == 0


def test_cancel_completes_the_current_change(notebook: Notebook) -> None:
    """Cancel sends no further change, but waits for the response to the current one."""
    begun, cancelled = threading.Event(), threading.Event()

    def reply(received: Received) -> Reply:
        if received.method == "GET":
            return listing()
        begun.set()
        assert cancelled.wait(30)
        return accepted(received)

    with scripted(reply) as service:
        notebook.run(connect_to(service), LIMITS)
        set_all(notebook.widget, 60)
        notebook.widget.get_by_role("button", name="Change 3 mailboxes").click()
        assert begun.wait(30)
        notebook.widget.get_by_role("button", name="Cancel").click()
        notebook.wait_until("limits._is_cancelled")
        cancelled.set()
        expect_text(notebook.widget, "Of 3 mailboxes: 1 changed; 2 not sent.")
        assert [one.method for one in service.requests].count("PATCH") == 1


def test_errors_of_reading_are_shown(notebook: Notebook) -> None:
    """A rejected token and an unreachable service show an error; Reload tries again."""
    replies = iter([json({}, status=401), listing()])
    with scripted(lambda _received: next(replies)) as service:
        notebook.run(connect_to(service), LIMITS)
        expect_text(notebook.widget.get_by_role("alert"), "401")
        notebook.widget.get_by_role("button", name="Reload").click()
        row_of(notebook.widget, "ada").wait_for()
    notebook.widget.get_by_role("button", name="Reload").click()
    expect_text(notebook.widget.get_by_role("alert"), "no response from http://127.0.0.1")
    row_of(notebook.widget, "ada").wait_for()


def test_a_fraction_is_not_sent(notebook: Notebook) -> None:
    """A fraction shows an error in its row and disables the button until it is corrected."""
    with scripted(lambda _received: listing()) as service:
        notebook.run(connect_to(service), LIMITS)
        widget = notebook.widget
        set_all(widget, 60)
        field = widget.get_by_label("New limit of bob@example.com")
        field.fill("62.5")
        expect_text(row_of(widget, "bob"), "Enter a whole number.")
        assert widget.get_by_role("button", name="Change 2 mailboxes").is_disabled()
        field.fill("")
        button = widget.get_by_role("button", name="Change 2 mailboxes", disabled=False)
        button.wait_for()
        widget.get_by_role("button", name="Discard").click()
        widget.get_by_text("No limit is changed yet.").wait_for()
        assert notebook.ask("print(limits.value)") == "{}\n"


def test_scrolling_changes_no_limit(notebook: Notebook) -> None:
    """Scrolling the wheel over a limit does not change the typed number."""
    with scripted(lambda _received: listing()) as service:
        notebook.run(connect_to(service), LIMITS)
        field = notebook.widget.get_by_label("New limit of ada@example.com")
        field.fill("60")
        field.hover()
        notebook.page.mouse.wheel(0, 100)
        # The page handles the wheel before the next key.
        notebook.widget.get_by_label("New limit of bob@example.com").fill("50")
        notebook.wait_until("'bob' in limits.value")
        assert field.input_value() == "60"
        assert notebook.ask("print(limits.value)") == "{'ada': 60, 'bob': 50}\n"


def test_the_code_is_copied_and_no_token_is_saved(
    notebook: Notebook, account: Sandbox, connecting: str
) -> None:
    """The copy button copies `.code`; page and saved notebook have no token and no address."""
    address = next(iter(limits_by_address(account)))
    notebook.run(connecting, LIMITS)
    widget = notebook.widget
    field = widget.get_by_label(f"New limit of {address}")
    field.wait_for()
    assert not widget.get_by_text("Copy code").is_visible()  # There is no code yet.
    field.fill("61")
    expect_text(widget.locator("pre"), "of.set_daily_email_limit(")
    widget.get_by_role("button", name="Copy code").click()
    widget.get_by_role("button", name="Copied").wait_for()
    copied = notebook.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == notebook.ask("print(limits.code, end='')")
    notebook.screenshot("mailbox_limits_light")
    notebook.theme(DARK)
    notebook.screenshot("mailbox_limits_dark")
    assert account.api_key not in notebook.page.content()
    saved = notebook.save().read_text()
    assert account.api_key not in saved
    assert address not in saved
    notebook.add(copied)
    assert limits_by_address(account)[address] == 61
