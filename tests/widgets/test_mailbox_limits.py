"""MailboxLimits without a browser: changes, capacity, code and results."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Fault, Sandbox
from outreach_frames.widgets import MailboxLimits
from outreach_frames.widgets.mailbox_limits.state import (
    CHANGE_DTYPES,
    RESULT_DTYPES,
    Change,
    Mailbox,
    Result,
    capacity,
    changes_code,
    changes_frame,
    check_new_limit,
    describe_capacity,
    describe_results,
    list_changes,
    results_frame,
)
from tests.scripted import Received, Reply, delayed, json, scripted

pytestmark = pytest.mark.long


def mailbox(
    identity: str | None = "m1", limit: int | None = 40, status: str | None = "active"
) -> Mailbox:
    """Return a mailbox with an address made from its id."""
    return Mailbox(identity, f"{identity}@example.com", "google", status, limit)


@pytest.mark.parametrize(
    ("before", "limits", "expected"),
    [
        (40, {"m1": 60}, [(40, 60)]),
        (40, {"m1": 40}, []),
        (40, {}, []),
        (None, {"m1": 0}, [(None, 0)]),
        (40, {"m2": 60}, []),
    ],
)
def test_only_different_limits_are_changes(
    before: int | None, limits: dict[str, int], expected: list[tuple[int | None, int]]
) -> None:
    """An unchanged limit, or one of an unknown mailbox, is not a change."""
    changes = list_changes([mailbox(limit=before)], limits)
    assert [(one.before, one.after) for one in changes] == expected


def test_a_mailbox_without_id_cannot_be_changed() -> None:
    """A mailbox without an id cannot be changed."""
    assert list_changes([mailbox(None)], {"None": 60, "": 60}) == []


@pytest.mark.parametrize("status", [*spec.MAILBOX_STATUSES, "warming", None])
def test_only_active_mailboxes_count(status: str | None) -> None:
    """The daily capacity counts only active mailboxes, before and after the changes."""
    listed = [mailbox("m1", 40, "active"), mailbox("m2", 50, status)]
    counts = status == "active"
    assert capacity(listed, {"m2": 70}) == ((90, 110) if counts else (40, 40))


def test_the_capacity_says_which_mailboxes_count() -> None:
    """The text has the sum before and after changes, and counts mailboxes left out of it."""
    listed = [
        mailbox("m1", 1000),
        mailbox("m2", None),
        mailbox("m3", 50, "inactive"),
        mailbox("m4", 50, "needs_reconnection"),
    ]
    assert describe_capacity(listed, {}) == (
        "1,000 emails per day from 2 active mailboxes; 2 mailboxes have another status; "
        "1 active mailbox has no limit."
    )
    assert describe_capacity(listed, {"m2": 20}).startswith(
        "1,000 emails per day (1,020 with the changes) from 2 active mailboxes"
    )


@pytest.mark.parametrize("value", [True, 1.5, 60.0, "60", None, float("nan"), 2**63, -(2**63) - 1])
def test_a_limit_is_a_whole_number(value: object) -> None:
    """A limit that is not an integer in Int64's range is rejected."""
    with pytest.raises(InvalidInputError, match="daily limit"):
        check_new_limit(value)


@pytest.mark.parametrize("value", [0, -5, 10**9])
def test_no_bounds_are_invented(value: int) -> None:
    """The widget accepts any size of limit, because the interface documents no bounds."""
    assert check_new_limit(value) == value


@given(identity=st.text(min_size=1), email=st.text(), limit=st.integers())
def test_the_code_makes_the_change_and_nothing_else(identity: str, email: str, limit: int) -> None:
    """For any id or address the code is one call with that id and limit."""
    code = changes_code([Change(identity, email, None, limit)])
    assert len(code.splitlines()) == 3
    _, statement = ast.parse(code).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert ast.unparse(statement.value.func) == "of.set_daily_email_limit"
    assert [ast.literal_eval(argument) for argument in statement.value.args] == [identity, limit]


def test_the_frames_have_the_same_dtypes_with_and_without_rows() -> None:
    """Changes and results have fixed columns and dtypes."""
    change = Change("m1", "ada@example.com", None, 60)
    result = Result(change, None, "unknown", "May have changed.")
    for dtypes, frames in (
        (CHANGE_DTYPES, (changes_frame([]), changes_frame([change]))),
        (RESULT_DTYPES, (results_frame([]), results_frame([result]))),
    ):
        for frame in frames:
            assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == dtypes


def test_results_in_words() -> None:
    """The summary counts every kind of result."""
    kinds = ("changed", "changed", "differs", "failed", "unknown", "not_sent")
    change = Change("m1", "ada@example.com", None, 60)
    results = [Result(change, None, kind, "") for kind in kinds]
    assert describe_results(results) == (
        "Of 6 mailboxes: 2 changed; 1 changed to another limit than requested; "
        "1 not changed; 1 may have changed: press Reload to see the limits; 1 not sent."
    )


def in_a_kernel(use: Callable[[], Awaitable[None]]) -> None:
    """Use a widget on a running event loop, like a kernel's."""

    async def with_a_limit() -> None:
        async with asyncio.timeout(30):
            await use()

    asyncio.run(with_a_limit())


async def idle(widget: MailboxLimits) -> None:
    """Wait until the widget is idle."""
    while widget.busy:
        await asyncio.sleep(0.005)


async def changed(widget: MailboxLimits, limits: dict[str, int]) -> pd.DataFrame:
    """Change limits and click the button as the page does; return the results."""
    await idle(widget)
    widget.edit(limits)
    widget.apply(widget.revision)
    await idle(widget)
    return widget.results


def test_a_sent_limit_is_in_the_service(client: Client) -> None:
    """A sent change is in the service, the frame and the results, and is no longer pending."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        before = widget.mailboxes
        target = before.iloc[0]
        asked = int(target["daily_email_limit"]) + 1
        results = await changed(widget, {target["id"]: asked})
        assert results[["id", "limit", "status"]].to_numpy().tolist() == [
            [target["id"], asked, "changed"]
        ]
        now = of.mailboxes(refresh=True)
        assert now.set_index("id")["daily_email_limit"][target["id"]] == asked
        assert widget.mailboxes["daily_email_limit"].tolist() == now["daily_email_limit"].tolist()
        assert widget.mailboxes.dtypes.equals(before.dtypes)
        assert widget.changes.empty
        assert widget.value == {}
        assert widget.code.endswith(f'("{target["id"]}", {asked})  # {target["email"]}')

    in_a_kernel(use)


def test_the_mailboxes_are_available_at_once(client: Client) -> None:
    """`.mailboxes` in the cell that created the widget waits for them and accepts new limits."""

    async def use() -> None:
        widget = MailboxLimits()
        frame = widget.mailboxes
        assert frame["id"].tolist() == of.mailboxes()["id"].tolist()
        widget.value = {frame["id"].iloc[1]: 7}
        await idle(widget)
        assert widget.changes["to"].tolist() == [7]
        with pytest.raises(InvalidInputError, match="whole number"):
            widget.value = {frame["id"].iloc[1]: 7.5}

    in_a_kernel(use)


def test_shown_changes_are_sent_once(client: Client) -> None:
    """A second click does nothing, and a click on an outdated list shows an error."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        target = widget.mailboxes["id"].iloc[2]
        widget.edit({target: 31})
        stale = widget.revision
        widget.edit({target: 32})
        widget.apply(stale)
        assert "Check the changes again" in widget.notices[0]["text"]
        assert widget.results.empty
        shown = widget.revision
        widget.apply(shown)
        await idle(widget)
        first = widget.notices
        widget.apply(shown)
        assert not widget.busy
        assert widget.notices == first
        assert widget.results["limit"].tolist() == [32]

    in_a_kernel(use)


@pytest.mark.parametrize(
    ("kind", "statuses", "left"),
    [
        ("token_revoked", ["failed", "not_sent", "not_sent"], 3),
        ("server_error", ["unknown", "changed", "changed"], 1),
        ("drop_after_commit", ["unknown", "changed", "changed"], 1),
        ("truncated_body", ["unknown", "changed", "changed"], 1),
    ],
)
def test_a_failure_hides_no_other_result(
    sandbox: Sandbox, client: Client, kind: str, statuses: list[str], left: int
) -> None:
    """Each mailbox has its own result, unsent changes stay pending, and a 401 ends the run."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        limits = widget.mailboxes.set_index("id")["daily_email_limit"].iloc[:3]
        sandbox.faults = Fault(kind, endpoint="update_mailbox", times=1)
        results = await changed(widget, {key: int(limit) + 3 for key, limit in limits.items()})
        assert results["status"].tolist() == statuses
        assert len(widget.changes) == left
        assert all(results["detail"].str.len() > 0)

    try:
        in_a_kernel(use)
    finally:
        sandbox.faults = None


def slow_account(received: Received) -> Reply:
    """Respond as an account with three mailboxes that delays changes."""
    if received.method == "GET":
        shown = [
            {"id": key, "daily_email_limit": 40, "status": "active"} for key in ("m1", "m2", "m3")
        ]
        return json({"mailboxes": shown, "_links": {}})
    return delayed(0.2, json({"id": received.path[-2:], **received.json}))


def test_cancel_ends_one_run_and_not_the_next() -> None:
    """Cancel finishes the running change, and the other changes can be sent afterwards."""
    with scripted(slow_account) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            widget = MailboxLimits()
            await idle(widget)
            widget.edit({"m1": 50, "m2": 60, "m3": 70})
            widget.apply(widget.revision)
            while len(service.requests) < 2:
                await asyncio.sleep(0.005)
            widget.cancel()
            await idle(widget)
            assert widget.results["status"].tolist() == ["changed", "not_sent", "not_sent"]
            assert widget.value == {"m2": 60, "m3": 70}
            widget.apply(widget.revision)
            await idle(widget)
            assert widget.results["status"].tolist() == ["changed", "changed"]

        in_a_kernel(use)
    assert [one.path for one in service.requests][1:] == [f"/mailboxes/m{key}" for key in (1, 2, 3)]


def test_while_limits_are_sent_nothing_else_begins() -> None:
    """During a run nothing can be edited, discarded, sent or read."""
    with scripted(slow_account) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            widget = MailboxLimits()
            widget.reload()
            await idle(widget)
            widget.edit({"m1": 50, "m2": 60})
            widget.apply(widget.revision)
            widget.edit({"m2": 61, "m3": 70})
            widget.discard()
            widget.apply(widget.revision)
            widget.reload()
            await idle(widget)
            assert widget.results["limit"].tolist() == [50, 60]
            assert widget.value == {}

        in_a_kernel(use)
    assert [one.method for one in service.requests] == ["GET", "PATCH", "PATCH"]


def responding(limit: Any) -> Callable[[Received], Reply]:
    """Return a service that replies to each change with another limit."""
    one = {"id": "m1", "email": "ada@example.com", "daily_email_limit": 40, "status": "active"}

    def reply(received: Received) -> Reply:
        if received.method == "GET":
            return json({"mailboxes": [one], "_links": {}})
        return json(one | {"daily_email_limit": limit})

    return reply


@pytest.mark.parametrize(
    ("limit", "status", "reported"),
    [(60, "changed", [60]), (50, "differs", [50]), (None, "unknown", [40])],
)
def test_the_reported_limit_is_shown(limit: int, status: str, reported: list[int]) -> None:
    """If the service reports another limit, or none, the widget shows that limit and a note."""
    with scripted(responding(limit)) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            widget = MailboxLimits()
            results = await changed(widget, {"m1": 60})
            assert results["status"].tolist() == [status]
            assert widget.mailboxes["daily_email_limit"].tolist() == reported

        in_a_kernel(use)


@pytest.mark.parametrize(
    ("status", "result", "words"),
    [(404, "failed", "Not changed"), (409, "unknown", "May have changed")],
)
def test_an_ambiguous_status_is_unknown(status: int, result: str, words: str) -> None:
    """Only a status that proves a rejection is shown as not changed."""

    def reply(received: Received) -> Reply:
        return responding(40)(received) if received.method == "GET" else json({}, status)

    with scripted(reply) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            results = await changed(MailboxLimits(), {"m1": 60})
            assert results["status"].tolist() == [result]
            assert results["detail"].iloc[0].startswith(words)

        in_a_kernel(use)


def test_limits_go_to_the_account_they_were_read_from() -> None:
    """After a new `connect` nothing is sent until the mailboxes are read again."""
    with (
        scripted(responding(60)) as first,
        scripted(responding(60)) as second,
        of.connect(first.url, "token", cache=None),
    ):

        async def use() -> None:
            widget = MailboxLimits()
            await idle(widget)
            widget.edit({"m1": 60})
            with of.connect(second.url, "token", cache=None):
                widget.apply(widget.revision)
                await idle(widget)
                assert "connection has changed" in widget.notices[0]["text"]
                assert not [one for one in second.requests if one.method == "PATCH"]
                widget.reload()
                await idle(widget)
                widget.apply(widget.revision)
                await idle(widget)
                assert widget.results["status"].tolist() == ["changed"]

        in_a_kernel(use)
        assert [one.method for one in first.requests] == ["GET"]


def test_all_changes_of_a_run_go_to_one_account() -> None:
    """All changes of a run go to one account, even after a new `connect`."""

    def reply(received: Received) -> Reply:
        one = {"id": received.path[-2:], "email": "ada@example.com", "status": "active"}
        if received.method == "GET":
            both = [one | {"id": key, "daily_email_limit": 40} for key in ("m1", "m2")]
            return json({"mailboxes": both, "_links": {}})
        return delayed(0.2, json(one | {"daily_email_limit": 60}))

    with (
        scripted(reply) as first,
        scripted(reply) as second,
        of.connect(first.url, "token", cache=None),
    ):

        async def use() -> None:
            widget = MailboxLimits()
            await idle(widget)
            widget.edit({"m1": 60, "m2": 60})
            widget.apply(widget.revision)
            with of.connect(second.url, "token", cache=None):
                await idle(widget)
            assert widget.results["status"].tolist() == ["changed", "changed"]

        in_a_kernel(use)
        assert [one.path for one in first.requests][1:] == ["/mailboxes/m1", "/mailboxes/m2"]
        assert second.requests == []


def test_a_value_changed_in_place_is_shown_before_it_is_sent(client: Client) -> None:
    """An in-place change of `value` is sent only after the page has shown it."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        first, second = widget.mailboxes["id"].iloc[3:5]
        widget.edit({first: 21})
        shown = widget.revision
        widget.value[second] = 22
        widget.apply(shown)
        assert "Check the changes again" in widget.notices[0]["text"]
        assert widget.results.empty
        widget.apply(widget.revision)
        await idle(widget)
        assert widget.results["limit"].tolist() == [21, 22]

    in_a_kernel(use)


def test_a_removed_mailbox_is_reported(client: Client) -> None:
    """After a reload a note names the new limit of a mailbox that no longer exists."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        widget.value = {"gone": 5}
        widget.reload()
        await idle(widget)
        assert widget.notices[0]["text"] == "1 mailbox with a new limit is no longer listed."
        assert widget.changes.empty

    in_a_kernel(use)


def always_waiting(received: Received) -> Reply:
    """Respond as an account with three mailboxes that delays every change with a 429."""
    if received.method == "GET":
        return slow_account(received)
    return json({}, 429, {"Retry-After": "30"})


def test_cancel_ends_a_wait() -> None:
    """After Cancel during a wait, neither the waiting change nor later ones are sent."""
    with scripted(always_waiting) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            widget = MailboxLimits()
            await idle(widget)
            widget.edit({"m1": 50, "m2": 60})
            widget.apply(widget.revision)
            while "asks to wait" not in widget.status:
                await asyncio.sleep(0.005)
            widget.cancel()
            await idle(widget)
            assert widget.status == ""
            assert widget.results["status"].tolist() == ["not_sent", "not_sent"]
            assert widget.results["detail"].tolist() == ["Not sent: cancelled."] * 2
            assert widget.value == {"m1": 50, "m2": 60}
            assert widget.notices[0]["text"] == "Of 2 mailboxes: 2 not sent."

        in_a_kernel(use)
    assert [one.method for one in service.requests] == ["GET", "PATCH"]


def test_cancel_ends_reading() -> None:
    """Reading mailboxes can be cancelled and repeated, and changes nothing."""
    slow = iter([True])

    def reply(received: Received) -> Reply:
        response = slow_account(received)
        return delayed(20, response) if next(slow, False) else response

    with scripted(reply) as service, of.connect(service.url, "token", cache=None):

        async def use() -> None:
            widget = MailboxLimits()
            while not service.requests:
                await asyncio.sleep(0.005)
            widget.cancel()
            await idle(widget)
            assert widget.notices[0]["kind"] == "error"
            widget.reload()
            await idle(widget)
            assert len(widget.mailboxes) == 3

        in_a_kernel(use)


def test_an_unexpected_error_is_shown_per_mailbox() -> None:
    """After an unexpected error the running change is unknown, and later ones are not sent."""

    class Broken(Client):
        def write(self, *arguments: Any, **options: Any) -> Any:
            super().write(*arguments, **options)
            raise RuntimeError("a fault of this package")

    with scripted(slow_account) as service, Broken(service.url, "token", cache=None) as client:

        async def use() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            widget = MailboxLimits(client)
            await idle(widget)
            widget.edit({"m1": 50, "m2": 60, "m3": 70})
            widget.apply(widget.revision)
            await idle(widget)
            results = widget.results
            assert results["status"].tolist() == ["unknown", "not_sent", "not_sent"]
            assert "RuntimeError" in results["detail"].iloc[0]
            assert "Unexpected internal error" in widget.notices[0]["text"]
            assert widget.value == {"m1": 50, "m2": 60, "m3": 70}

        in_a_kernel(use)


def test_an_invalid_limit_is_marked(client: Client) -> None:
    """A limit that is not an integer is marked, and nothing is sent until it is corrected."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        first, second = widget.mailboxes["id"].iloc[:2]
        told: list[dict[str, Any]] = []
        # Record the messages, because there is no kernel.
        widget.send = told.append
        widget.edit({first: "", second: 33, "nobody": 5})
        assert told[-1]["problems"] == {first: "Enter a whole number."}
        assert widget.value == {second: 33}
        widget.apply(widget.revision)
        assert "Check the changes again" in widget.notices[0]["text"]
        assert widget.results.empty
        widget.edit({first: None})
        assert told[-1]["problems"] == {}
        widget.edit({first: "x"})
        widget.discard()
        assert told[-1]["problems"] == {}
        assert widget.value == {}
        widget.apply(widget.revision)
        assert not widget.busy

    in_a_kernel(use)


def test_removed_mailboxes_are_counted(client: Client) -> None:
    """After a reload a note counts new limits of mailboxes that no longer exist."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        widget.value = {"gone": 5, "too": 6}
        widget.reload()
        await idle(widget)
        assert widget.notices[0]["text"] == "2 mailboxes with a new limit are no longer listed."

    in_a_kernel(use)


def test_no_token_and_no_address_is_in_the_state(sandbox: Sandbox, client: Client) -> None:
    """The state that notebooks save contains neither the token nor an address."""

    async def use() -> None:
        widget = MailboxLimits(client=client)
        await idle(widget)
        widget.edit({widget.mailboxes["id"].iloc[0]: 5})
        kept = repr(
            {name: value for name, value in widget.get_state().items() if name not in {"_esm"}}
        )
        assert "5" in kept
        assert sandbox.api_key not in kept
        assert widget.mailboxes["email"].iloc[0] not in kept
        assert sandbox.api_key not in repr(widget)

    in_a_kernel(use)
