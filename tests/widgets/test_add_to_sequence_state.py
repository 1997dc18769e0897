"""Choices, guesses and code of AddToSequence, without a browser or service."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.widgets.add_to_sequence.state import (
    code_for,
    column_options,
    guess_columns,
    mailbox_options,
    plan_arguments,
    read_value,
    sequence_options,
)

pytestmark = pytest.mark.long


EMAILS = [
    "email", "E-Mail", "e-mail address ", "Email Address", "EmailAddress", "emailaddress",
    "work_email", "workEmail", "Work E-Mail", "Mail", "EMAIL", "Email (work)", "contact email",
    "E Mail", "Primary Email", "Email ID",
]  # fmt: skip
NO_EMAILS = [
    "Email Status", "email_sent_at", "Email Opened", "mailing", "email domain", "Email Owner",
    "Manager Email", "female", "Email opt-in", "created_by", "Sender", "cc", "Kontakt",
]  # fmt: skip
URLS = [
    "profnet_url", "Profile URL", "profile link (optional)", "ProfileURL", "Profnet", "profnet url",
    "Person Profile Url", "Public profile", "ProfNet URL",
]  # fmt: skip
NO_URLS = [
    "company_profnet_url", "Profile picture", "url", "website", "Company Profile", "profile_id",
    "school_profnet_url",
]  # fmt: skip


def guess(*columns: str, networks: Collection[str] = ()) -> list[str | None]:
    """Return the guessed columns of email and profile URL."""
    return list(guess_columns(columns, networks).values())


def test_guessed_columns() -> None:
    """Columns are guessed in any spelling; columns about email or other people's are not."""
    for name in EMAILS:
        assert guess("Name", name) == [name, None]
    for name in NO_EMAILS:
        assert guess("Name", name) == [None, None]
        assert guess("E-Mail", name) == ["E-Mail", None]
    for name in URLS:
        assert guess("Name", name) == [None, name]
    for name in NO_URLS:
        assert guess("Name", name) == [None, None]
    assert guess("Othernet URL") == [None, None]
    assert guess("Othernet URL", networks={"profnet", "othernet"}) == [None, "Othernet URL"]
    assert guess("Work Email", "Private Email") == [None, None]
    assert guess("work email", "email") == ["email", None]


COLUMNS = ["email", 'a "quoted"', "back\\slash", "new\nline", "Größe", "{x}", "'both\"", "{", "e"]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("long", [False, True])
def test_code_does_the_same(column: str, long: bool) -> None:
    """The code is valid Python with exactly the chosen columns, whatever their names."""
    value = read_value(
        {
            "sequence_id": "seq",
            "email": column,
            "data": {"first_name": column} if long else {},
            "require": ["first_name"] if long else [],
            "overrides": {field.name: True for field in spec.OVERRIDES} if long else {},
            "mailboxes": ["anna@example.org"] if long else [],
            "mailbox": column if long else None,
        }
    )
    code = code_for(
        value, [column], journal="a.journal" if long else None, client="client" if long else ""
    )
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.Call)
    assert ast.unparse(statement.value.func) == "df.outreach.add_to_sequence"
    given = {one.arg: one.value for one in statement.value.keywords}
    if long:
        assert ast.unparse(given.pop("client")) == "client"
    named = {name: ast.literal_eval(node) for name, node in given.items()}
    expected = {
        name: chosen
        for name, chosen in plan_arguments(value).items()
        if chosen is not None and name != "sequence_id" and (name, chosen) != ("email", "email")
    }
    assert named == expected | ({"journal": "a.journal"} if long else {})
    assert ast.literal_eval(statement.value.args[0]) == "seq"


def test_unchosen_default_columns_are_disabled() -> None:
    """The code disables an unchosen default column by name; without a sequence it is empty."""
    value = read_value({"sequence_id": "s", "profnet_url": "profnet_url"})
    assert code_for(value, ["email", "profnet_url"], frame="leads") == (
        "# leads is the frame that was passed to AddToSequence.\n"
        "report = leads.outreach.add_to_sequence('s', email=None)"
    )
    assert code_for(read_value({}), []) == ""


def sequences_frame(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return a frame like that of of.sequences()."""
    names = [field.name for field in spec.SEQUENCE if field.name != "_links"]
    return pd.DataFrame(rows, columns=names).astype({"created_at": "datetime64[ns, UTC]"})


def test_only_active_overrides_count() -> None:
    """Overrides that are off are dropped, and empty parts are omitted."""
    value = read_value({"overrides": {spec.OVERRIDES[0].name: False}, "mailboxes": ["a@b.example"]})
    assert value["overrides"] == {}
    assert plan_arguments(value)["overrides"] is None
    assert plan_arguments(value)["mailboxes"] == ["a@b.example"]
    assert plan_arguments(read_value({}))["mailboxes"] is None


def test_sequences_with_the_same_name() -> None:
    """Sequences with the same name are distinguished by creator, date and id, and need an id."""
    twin = {"name": "Twin", "status": "active", "created_by_user_email": "ada@example.org"}
    options = sequence_options(
        sequences_frame(
            {**twin, "id": "b", "created_at": pd.Timestamp("2026-01-02", tz="UTC")},
            {**twin, "id": "a"},
            {"id": "c", "name": "alone", "status": "active"},
            {"name": "lost", "status": "active"},
        )
    )
    assert [option["label"] for option in options] == [
        "alone",
        "lost",
        "Twin · ada@example.org · 2026-01-02 · b",
        "Twin · ada@example.org · a",
    ]
    assert [option["accepts"] for option in options] == [True, False, True, True]


def test_mailboxes() -> None:
    """Only active mailboxes can be chosen, each address once."""
    states = [*spec.MAILBOX_STATUSES, None]
    frame = pd.DataFrame(
        {
            "email": [*(f"{n}@example.org" for n in range(len(states))), None],
            "status": [*states, "active"],
        }
    )
    options = mailbox_options(pd.concat([frame, frame]))
    assert [option["active"] for option in options] == [True, False, False, False]
    assert [option["why"] for option in options] == [
        "", "inactive", "needs reconnection", "status unknown",
    ]  # fmt: skip


def test_columns_that_cannot_be_used() -> None:
    """Columns with labels that are not text, or are repeated, are reported and cannot be chosen."""
    options = column_options(["First Name", 7, "twice", "twice", "\ud800", "艳", ("a", "b")])
    assert [option["name"] for option in options] == ["First Name", None, None, None, "艳", None]
    assert [bool(option["problem"]) for option in options] == [False, True, True, True, False, True]
    assert options[0]["field"] == of.field_name("First Name")
    assert options[4]["field"] == ""
