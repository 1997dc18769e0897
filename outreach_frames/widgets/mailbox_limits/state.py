"""Changes of daily limits: differences, daily capacity, Python code and results; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import check_integer
from outreach_frames.common.text import plural, printable
from outreach_frames.errors import InvalidInputError
from outreach_frames.widgets.python_code import literal

Outcome = Literal["changed", "differs", "failed", "unknown", "not_sent"]

CHANGE_DTYPES = {"id": "str", "email": "str", "from": "Int64", "to": "Int64"}
RESULT_DTYPES = {"id": "str", "email": "str", "limit": "Int64", "status": "str", "detail": "str"}

# Numbers outside this range do not fit into Int64, and are typing errors.
_INT64 = range(-(2**63), 2**63)


class Change(NamedTuple):
    """A mailbox's limit now (None if unknown) and after the change."""

    id: str
    email: str
    before: int | None
    after: int


class Result(NamedTuple):
    """The result of a change, with the limit that the service reports now, if any."""

    change: Change
    limit: int | None
    status: Outcome
    detail: str


class Mailbox(NamedTuple):
    """The fields of a mailbox that the widget shows; None is an unknown value."""

    id: str | None
    email: str | None
    provider: str | None
    status: str | None
    limit: int | None


def read_mailboxes(frame: pd.DataFrame) -> list[Mailbox]:
    """Convert a frame of `of.mailboxes` to a list of mailboxes."""
    columns = (
        frame[name].tolist()
        for name in ("id", "email", "email_provider", "status", "daily_email_limit")
    )
    return [
        Mailbox(*(None if pd.isna(cell) else cell for cell in row))
        for row in zip(*columns, strict=True)
    ]


def check_new_limit(value: object) -> int:
    """Check that a limit is a whole number; only the service knows the minimum and maximum."""
    limit = check_integer("A daily limit", value)
    if limit not in _INT64:
        raise InvalidInputError(f"A daily limit of {limit:.3g} is out of range.")
    return limit


def list_changes(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> list[Change]:
    """Return the changes for new limits that differ from the current limits."""
    return [
        Change(mailbox.id, mailbox.email or "", mailbox.limit, limits[mailbox.id])
        for mailbox in mailboxes
        if mailbox.id is not None and limits.get(mailbox.id, mailbox.limit) != mailbox.limit
    ]


def capacity(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> tuple[int, int]:
    """Return the emails per day of all active mailboxes, now and with new limits."""
    active = [one for one in mailboxes if one.status == spec.ACTIVE_MAILBOX_STATUS]
    now = sum(one.limit or 0 for one in active)
    after = sum(limits.get(one.id or "", one.limit or 0) for one in active)
    return now, after


def describe_capacity(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> str:
    """Describe the daily capacity and the mailboxes that count towards it.

    >>> describe_capacity([Mailbox("m1", "ada@example.com", "google", "active", 40)], {"m1": 60})
    '40 emails per day (60 with the changes) from 1 active mailbox.'
    """
    listed = list(mailboxes)
    now, after = capacity(listed, limits)
    active = [one for one in listed if one.status == spec.ACTIVE_MAILBOX_STATUS]
    without_limit = sum(one.limit is None for one in active)
    others = len(listed) - len(active)
    parts = [f"{now:,} emails per day"]
    if list_changes(listed, limits):
        parts.append(f" ({after:,} with the changes)")
    parts.append(f" from {count_mailboxes(len(active), 'active')}")
    if others:
        verb = "has" if others == 1 else "have"
        parts.append(f"; {count_mailboxes(others)} {verb} another status")
    if without_limit:
        verb = "has" if without_limit == 1 else "have"
        parts.append(f"; {count_mailboxes(without_limit, 'active')} {verb} no limit")
    return "".join(parts) + "."


def count_mailboxes(number: int, kind: str = "") -> str:
    """Format a number of mailboxes."""
    kind = f"{kind} " if kind else ""
    return plural(number, f"{kind}mailbox", f"{kind}mailboxes")


def describe_results(results: Iterable[Result]) -> str:
    """Describe the results of changes.

    >>> change = Change("m1", "ada@example.com", 40, 60)
    >>> describe_results([Result(change, 60, "changed", "")])
    '1 mailbox changed.'
    """
    listed = list(results)
    words = {
        "changed": "changed",
        "differs": "changed to another limit than requested",
        "failed": "not changed",
        "unknown": "may have changed: press Reload to see the limits",
        "not_sent": "not sent",
    }
    counts = {status: sum(one.status == status for one in listed) for status in words}
    parts = [f"{count:,} {words[status]}" for status, count in counts.items() if count]
    if len(parts) == 1 and counts["changed"]:
        return f"{count_mailboxes(counts['changed'])} changed."
    return f"Of {count_mailboxes(len(listed))}: {'; '.join(parts)}."


def changes_code(changes: Iterable[Change]) -> str:
    """Write Python code that makes these changes.

    >>> print(changes_code([Change("m1", "ada@example.com", 40, 60)]))
    import outreach_frames as of
    <BLANKLINE>
    of.set_daily_email_limit("m1", 60)  # ada@example.com
    """
    lines = [
        f"of.set_daily_email_limit({literal(one.id)}, {one.after}){_comment(one.email)}"
        for one in changes
    ]
    return "\n".join(["import outreach_frames as of", "", *lines]) if lines else ""


def changes_frame(changes: Iterable[Change]) -> pd.DataFrame:
    """Return changes as a frame: id, email, from, to."""
    return pd.DataFrame(list(changes), columns=list(CHANGE_DTYPES)).astype(CHANGE_DTYPES)


def results_frame(results: Iterable[Result]) -> pd.DataFrame:
    """Return results as a frame: id, email, limit, status, detail."""
    rows = [(change.id, change.email, *result) for change, *result in results]
    return pd.DataFrame(rows, columns=list(RESULT_DTYPES)).astype(RESULT_DTYPES)


def _comment(email: str) -> str:
    # A line break in an address, which comes from the service, would end the comment.
    shown = printable(email)
    return f"  # {shown}" if shown else ""
