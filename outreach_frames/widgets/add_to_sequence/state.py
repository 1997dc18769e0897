"""What is chosen for adding leads, as Python too, and what there is to choose from; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import has_lone_surrogate, quoted, shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.planning.mapping import (
    DISTRIBUTION,
    EMAIL,
    MAILBOXES,
    OVERRIDES,
    PROFNET_URL,
)
from outreach_frames.leads.planning.syntax import field_name
from outreach_frames.widgets.python_code import one_line_call

_DEFAULTS: Final[Mapping[str, Any]] = {
    "sequence_id": None,
    EMAIL: None,
    PROFNET_URL: None,
    "data": {},
    "overrides": {},
    DISTRIBUTION: None,
    MAILBOXES: [],
}

FIELD_RULE: Final = (
    "lowercase letters, digits and underscores, beginning with a letter, at most "
    f"{spec.MAX_DATA_NAME_LENGTH} characters"
)


def read_value(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice with all of its parts, defaults for those left out.

    Parameters
    ----------
    value : mapping
        Any of sequence_id, email, profnet_url (str or None), data ({field: column}), overrides
        ({override: bool}), leads_distribution (str or None), mailboxes (list of str).

    Raises
    ------
    InvalidInputError
        A part does not exist or is of the wrong type. Names of fields and columns are left to the
        plan.

    Examples
    --------
    >>> read_value({"email": "E-Mail", "overrides": {"ignore_exclusion_list": True}})["overrides"]
    {'ignore_exclusion_list': True}
    """
    if unknown := value.keys() - _DEFAULTS.keys():
        raise InvalidInputError(
            f"{quoted(sorted(map(str, unknown))[0])} is not part of a choice. There are: "
            f"{', '.join(_DEFAULTS)}."
        )
    full = {**_DEFAULTS, **value}
    for name in ("sequence_id", EMAIL, PROFNET_URL):
        _require(name, full[name], full[name] is None or isinstance(full[name], str), "text")
    _require("data", full["data"], _is_texts(full["data"]), "{field: column}")
    overrides = full["overrides"]
    right = isinstance(overrides, Mapping) and all(
        name in OVERRIDES and isinstance(on, bool) for name, on in overrides.items()
    )
    _require("overrides", overrides, right, f"{{name: True}} of {', '.join(OVERRIDES)}")
    distribution = full[DISTRIBUTION]
    right = distribution is None or distribution in spec.LEADS_DISTRIBUTIONS
    _require(DISTRIBUTION, distribution, right, f"one of {', '.join(spec.LEADS_DISTRIBUTIONS)}")
    mailboxes = full[MAILBOXES]
    right = isinstance(mailboxes, list | tuple) and all(isinstance(one, str) for one in mailboxes)
    _require(MAILBOXES, mailboxes, right, "a list of addresses")
    return {
        **full,
        "data": dict(full["data"]),
        "overrides": {name: True for name in OVERRIDES if overrides.get(name)},
        MAILBOXES: list(mailboxes),
    }


def plan_arguments(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice as all arguments of `make_plan`.

    >>> plan_arguments(read_value({"sequence_id": "s1", "email": "Mail"}))["email"]
    'Mail'
    """
    custom = value[DISTRIBUTION] == spec.MAILBOXES_LEADS_DISTRIBUTION
    return {
        **value,
        "data": value["data"] or None,
        "overrides": value["overrides"] or None,
        MAILBOXES: (value[MAILBOXES] or None) if custom else None,
    }


def code_of(
    value: Mapping[str, Any],
    columns: Collection[Hashable],
    *,
    journal: str | Path | None = None,
    with_client: bool = False,
    is_pandas: bool = True,
) -> str:
    """Return Python code for a choice; empty while no sequence is chosen.

    Parameters
    ----------
    value : mapping
        The choice, as `read_value` returns it.
    columns : collection
        The frame's columns; an identifier's default column is left out.
    journal : str or Path, optional
        The journal's path.
    with_client : bool
        Whether the call names its client.
    is_pandas : bool
        Whether the frame has the accessor; one of another library goes through `outreach`.

    Examples
    --------
    >>> print(code_of(read_value({"sequence_id": "s1", "email": "Mail"}), ["Mail"]))
    report = df.outreach.add_to_sequence("s1", email="Mail")
    """
    if value["sequence_id"] is None:
        return ""
    arguments = plan_arguments(value)
    given: list[str | tuple[str, object]] = [("", arguments.pop("sequence_id"))]
    for name in (EMAIL, PROFNET_URL):
        chosen = arguments.pop(name)
        # The default is a column of the same name, where there is one.
        if chosen != (name if name in columns else None):
            given.append((f"{name}=", chosen))
    given += [(f"{name}=", chosen) for name, chosen in arguments.items() if chosen is not None]
    if journal is not None:
        given.append(("journal=", str(journal)))
    given += ["client=client"] * with_client
    accessor = "df.outreach" if is_pandas else "of.outreach(df)"
    return one_line_call(f"report = {accessor}.add_to_sequence", given)


def sequence_options(sequences: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the sequences to choose from, by name: id, label, name, accepts, why, hint.

    `why` says why a sequence cannot be chosen, `hint` what to know about one that can.
    """
    rows = sequences.to_dict(orient="records")
    named = [{name: _plain(cell) for name, cell in row.items()} for row in rows]
    names = Counter(row["name"] for row in named)
    options = [_sequence_option(row, names[row["name"]] > 1) for row in named]
    return sorted(options, key=lambda option: (option["label"].casefold(), option["id"] or ""))


def mailbox_options(mailboxes: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the mailboxes to choose from: email, label, active, why; each address once."""
    options: dict[str, dict[str, Any]] = {}
    for row in mailboxes[["email", "status"]].to_dict(orient="records"):
        email, status = _plain(row["email"]), _plain(row["status"])
        active = status == spec.MAILBOX_STATUSES[0]
        if email is not None and not (email in options and options[email]["active"]):
            why = "" if active else (status or "status not known").replace("_", " ")
            options[email] = {
                "email": email,
                "label": shorten(email),
                "active": active,
                "why": shorten(why),
            }
    return [options[email] for email in sorted(options, key=str.casefold)]


def column_options(labels: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the columns to choose from: name, field, problem.

    `name` is None for a column that cannot be chosen, `label` is its text for the page; `field` is
    the proposed name of its field.
    """
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


def _require(name: str, value: object, right: bool, wanted: str) -> None:
    if not right:
        raise InvalidInputError(f"{name} takes {wanted}, not {quoted(value)}.")


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(part, str) for pair in value.items() for part in pair
    )


def _sequence_option(row: Mapping[Any, str | None], is_twin: bool) -> dict[str, Any]:
    status, identity = row["status"], row["id"]
    why = hint = ""
    if identity is None:
        why = "it has no id"
    elif status is None:
        hint = "Its status is not known; whether it takes leads shows when they are sent."
    elif status not in spec.SEQUENCE_STATUSES:
        hint = (
            f"Its status, {quoted(status)}, is not familiar; whether it takes leads shows when "
            "they are sent."
        )
    elif not spec.SEQUENCE_STATUSES[status]:
        why = f"{status}: takes no leads"
    name = row["name"] or identity or "no name"
    parts = [name]
    if is_twin:
        created = (row["created_at"] or "")[:10]
        parts += [part for part in (row["created_by_user_email"], created, identity) if part]
    return {
        "id": identity,
        "name": shorten(str(name)),
        "label": shorten(" · ".join(parts)),
        "accepts": not why,
        "why": why,
        "hint": hint,
    }


def _plain(value: Any) -> str | None:
    return None if is_missing(value) else str(value)


def _column_problem(label: object, times: int) -> str:
    if not isinstance(label, str):
        return f"its name is not text but {type(label).__name__}: rename it to use it"
    if times > 1:
        return f"{times} columns have this name: rename them to use them"
    if has_lone_surrogate(label):
        return "its name contains half a character: rename it to use it"
    return ""


def _field_of(label: object) -> str:
    try:
        return field_name(label)
    except InvalidInputError:
        return ""
