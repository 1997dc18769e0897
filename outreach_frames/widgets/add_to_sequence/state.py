"""The choices for adding leads, guessed columns, the options and the Python code; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd
from msgspec.structs import asdict

from outreach_frames import spec
from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import has_lone_surrogate, shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.planning.mapping import EMAIL, MAILBOX, MAILBOXES, PROFNET_URL
from outreach_frames.leads.planning.syntax import field_name
from outreach_frames.tables.columns import columns_like
from outreach_frames.widgets.python_code import one_line_call

_Overrides: Final = msgspec.defstruct(
    "_Overrides",
    [(name, bool, False) for name in spec.OVERRIDE_NAMES],
    forbid_unknown_fields=True,
    frozen=True,
)
_Choice: Final = msgspec.defstruct(
    "_Choice",
    [
        *((name, str | None, None) for name in ("sequence_id", EMAIL, PROFNET_URL)),
        ("data", dict[str, str], {}),
        ("require", list[str], []),
        ("overrides", _Overrides, _Overrides()),
        (MAILBOX, str | None, None),
        (MAILBOXES, list[str], []),
    ],
    forbid_unknown_fields=True,
)

FIELD_RULE: Final = (
    "lowercase letters, digits and underscores, beginning with a letter, at most "
    f"{spec.MAX_DATA_NAME_LENGTH} characters"
)


def guess_columns(columns: Sequence[str], networks: Collection[str] = ()) -> dict[str, str | None]:
    """Guess the columns of `email` and `profnet_url`; `networks` has names of the network."""
    return {
        field: _guess(field, columns_like(field, columns, networks))
        for field in (EMAIL, PROFNET_URL)
    }


def _guess(field: str, named: Sequence[str]) -> str | None:
    """Choose the column with the field's name, or the only column with a similar name."""
    is_clear = len(named) == 1 or named[:1] == [field]
    return named[0] if is_clear else None


def read_value(value: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults to a choice and check the types; the plan checks the names."""
    try:
        full = asdict(msgspec.convert(value, _Choice))
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"The choice is invalid: {error}. Its keys are {', '.join(_Choice.__struct_fields__)}."
        ) from error
    overrides = asdict(full["overrides"])
    return {**full, "overrides": {name: on for name, on in overrides.items() if on}}


def plan_arguments(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `make_plan` for a choice."""
    collections = ("data", "require", "overrides", MAILBOXES)
    return {**value, **{name: value[name] or None for name in collections}}


def code_for(
    value: Mapping[str, Any],
    columns: Collection[Hashable],
    *,
    journal: str | Path | None = None,
    client: str = "",
    frame: str = "df",
    is_pandas: bool = True,
) -> str:
    """Return Python code for a choice and the frame's columns; "" while no sequence is chosen.

    `frame` and `client` are the names of their variables; without a client, the code omits it.
    """
    if value["sequence_id"] is None:
        return ""
    arguments = plan_arguments(value)
    code = [repr(arguments.pop("sequence_id"))]
    for name in (EMAIL, PROFNET_URL):
        chosen = arguments.pop(name)
        # By default, `add_to_sequence` uses the column of the same name, if the frame has it.
        if chosen != (name if name in columns else None):
            code.append(f"{name}={chosen!r}")
    code += [f"{name}={chosen!r}" for name, chosen in arguments.items() if chosen]
    if journal is not None:
        code.append(f"journal={str(journal)!r}")
    code += [f"client={client}"] * bool(client)
    accessor = f"{frame}.outreach" if is_pandas else f"of.outreach({frame})"
    call = one_line_call(f"report = {accessor}.add_to_sequence", code)
    return f"# {frame} is the frame that was passed to AddToSequence.\n{call}"


def sequence_options(sequences: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the sequences as options, sorted by name; `why` explains a disabled option."""
    rows = sequences.to_dict(orient="records")
    named = [{name: _plain(cell) for name, cell in row.items()} for row in rows]
    names = Counter(row["name"] for row in named)
    options = [_sequence_option(row, names[row["name"]] > 1) for row in named]
    return sorted(options, key=lambda option: (option["label"].casefold(), option["id"] or ""))


def mailbox_options(mailboxes: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the mailboxes as options, each address once."""
    options: dict[str, dict[str, Any]] = {}
    for row in mailboxes[["email", "status"]].to_dict(orient="records"):
        email, status = _plain(row["email"]), _plain(row["status"])
        active = status == spec.MAILBOX_STATUSES[0]
        if email is not None and not (email in options and options[email]["active"]):
            why = "" if active else (status or "status unknown").replace("_", " ")
            options[email] = {
                "email": email,
                "label": shorten(email),
                "active": active,
                "why": shorten(why),
            }
    return [options[email] for email in sorted(options, key=str.casefold)]


def column_options(labels: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the columns as options, with proposed field names; unusable columns have no name."""
    times = Counter(labels)
    options = []
    for label in dict.fromkeys(labels):
        problem = _column_problem(label, times[label])
        options.append(
            {
                "name": None if problem else str(label),
                "label": shorten(str(label)),
                "field": "" if problem else _field_of(label),
                "problem": problem,
            }
        )
    return options


def _sequence_option(row: Mapping[Any, str | None], has_same_name: bool) -> dict[str, Any]:
    status, identity = row["status"], row["id"]
    why = ""
    if identity is None:
        why = "it has no id"
    elif not spec.SEQUENCE_STATUSES.get(status or "", True):
        why = f"{status}: accepts no leads"
    name = row["name"] or identity or "no name"
    parts = [name]
    if has_same_name:
        created = (row["created_at"] or "")[:10]
        parts += [part for part in (row["created_by_user_email"], created, identity) if part]
    return {
        "id": identity,
        "name": shorten(str(name)),
        "label": shorten(" · ".join(parts)),
        "accepts": not why,
        "why": why,
    }


def _plain(value: Any) -> str | None:
    return None if is_missing(value) else str(value)


def _column_problem(label: object, times: int) -> str:
    if not isinstance(label, str):
        return f"its name is {type(label).__name__}, not text: rename the column to use it"
    if times > 1:
        return f"{times} columns have this name: rename the columns to use them"
    if has_lone_surrogate(label):
        return "its name contains an invalid character: rename the column to use it"
    return ""


def _field_of(label: object) -> str:
    try:
        return field_name(label)
    except InvalidInputError:
        return ""
