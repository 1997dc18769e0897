"""Changes of daily limits: what changes, what it adds up to, the code, and the results."""

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

# Anything beyond is a slip of the keyboard, and does not fit into the frames' Int64.
_INT64 = range(-(2**63), 2**63)


class Change(NamedTuple):
    """One mailbox's limit: what it is (None where the service does not say) and what it will be."""

    id: str
    email: str
    before: int | None
    after: int


class Result(NamedTuple):
    """What became of one change; `limit` is what the service reports now, None if it is silent."""

    change: Change
    limit: int | None
    status: Outcome
    detail: str


class Mailbox(NamedTuple):
    """What the widget shows of a mailbox; None where the service does not say."""

    id: str | None
    email: str | None
    provider: str | None
    status: str | None
    limit: int | None


def read_mailboxes(frame: pd.DataFrame) -> list[Mailbox]:
    """Return what a frame of `of.mailboxes` holds, in its order."""
    columns = (
        frame[name].tolist()
        for name in ("id", "email", "email_provider", "status", "daily_email_limit")
    )
    return [
        Mailbox(*(None if pd.isna(cell) else cell for cell in row))
        for row in zip(*columns, strict=True)
    ]


def check_new_limit(value: object) -> int:
    """Return a limit that can be requested; only the service knows its bounds.

    >>> check_new_limit(60)
    60
    """
    limit = check_integer("A daily limit", value)
    if limit not in _INT64:
        raise InvalidInputError(f"A daily limit of {limit:.3g} is too large a number.")
    return limit


def list_changes(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> list[Change]:
    """Return what would change if these mailboxes, by id, got these limits.

    >>> ada = Mailbox("m1", "ada@example.com", "google", "active", 40)
    >>> list_changes([ada], {"m1": 60})
    [Change(id='m1', email='ada@example.com', before=40, after=60)]
    >>> list_changes([ada], {"m1": 40})
    []
    """
    return [
        Change(mailbox.id, mailbox.email or "", mailbox.limit, limits[mailbox.id])
        for mailbox in mailboxes
        if mailbox.id is not None and limits.get(mailbox.id, mailbox.limit) != mailbox.limit
    ]


def capacity(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> tuple[int, int]:
    """Return how many emails all active mailboxes may send in a day: now, and with new limits.

    >>> capacity([Mailbox("m1", "ada@example.com", "google", "active", 40)], {"m1": 60})
    (40, 60)
    """
    active = [one for one in mailboxes if one.status == spec.ACTIVE_MAILBOX_STATUS]
    now = sum(one.limit or 0 for one in active)
    after = sum(limits.get(one.id or "", one.limit or 0) for one in active)
    return now, after


def describe_capacity(mailboxes: Iterable[Mailbox], limits: Mapping[str, int]) -> str:
    """Return the daily capacity in words, and which mailboxes count towards it.

    >>> describe_capacity([Mailbox("m1", "ada@example.com", "google", "active", 40)], {"m1": 60})
    '40 emails a day, 60 with the changes. The 1 active mailbox counts.'
    """
    listed = list(mailboxes)
    now, after = capacity(listed, limits)
    active = [one for one in listed if one.status == spec.ACTIVE_MAILBOX_STATUS]
    silent = sum(one.limit is None for one in active)
    others = len(listed) - len(active)
    parts = [f"{now:,} emails a day"]
    if list_changes(listed, limits):
        parts.append(f", {after:,} with the changes")
    parts.append(f". The {count_mailboxes(len(active), 'active')} count{_s(len(active))}")
    if others:
        parts.append(f"; {others:,} of another status {'does' if others == 1 else 'do'} not")
    if silent:
        parts.append(f"; {silent:,} of the active {'has' if silent == 1 else 'have'} no limit")
    return "".join(parts) + "."


def count_mailboxes(number: int, kind: str = "") -> str:
    """Return a number of mailboxes in words.

    >>> count_mailboxes(1), count_mailboxes(1200, "active")
    ('1 mailbox', '1,200 active mailboxes')
    """
    kind = f"{kind} " if kind else ""
    return plural(number, f"{kind}mailbox", f"{kind}mailboxes")


def describe_results(results: Iterable[Result]) -> str:
    """Return in words what became of the changes.

    >>> change = Change("m1", "ada@example.com", 40, 60)
    >>> describe_results([Result(change, 60, "changed", "")])
    '1 mailbox changed.'
    """
    listed = list(results)
    words = {
        "changed": "changed",
        "differs": "changed to a limit other than the requested one",
        "failed": "not changed",
        "unknown": "may have changed: Reload shows its limit",
        "not_sent": "not sent",
    }
    counts = {status: sum(one.status == status for one in listed) for status in words}
    parts = [f"{count:,} {words[status]}" for status, count in counts.items() if count]
    if len(parts) == 1 and counts["changed"]:
        return f"{count_mailboxes(counts['changed'])} changed."
    return f"Of {count_mailboxes(len(listed))}: {'; '.join(parts)}."


def changes_code(changes: Iterable[Change]) -> str:
    """Return Python code that makes these changes.

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
    # Addresses come from the service, and a line break in one would end the comment.
    shown = printable(email)
    return f"  # {shown}" if shown else ""


def _s(number: int) -> str:
    return "s" if number == 1 else ""
