"""The page's content: choices and their options, Python code, plans and outcomes; pure."""

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
from outreach_frames.common.text import has_lone_surrogate, plural, printable, shorten
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.cards import counted_meanings, plan_facts, plan_headline
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.mapping import EMAIL, MAILBOX, MAILBOXES, PROFNET_URL
from outreach_frames.leads.planning.syntax import field_name
from outreach_frames.leads.sending.report import SubmissionReport
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
PROBLEMS_SHOWN: Final = 20
OUTCOMES_SHOWN: Final = 20
_PROBLEM: Final = ["row", "index", "column", "message"]
# What the rows with a problem have, by the problem's code.
PROBLEM_WORDS: Final = {
    "missing_identifier": "no identifier",
    "placeholder": "a placeholder",
    "not_a_profile": "a URL that is not a person's profile",
    "shared_email": "an address that several people share",
    "template_text": "an unfilled template",
    "placeholder_text": "a placeholder in a data field",
    "field_missing_everywhere": "a data field that is missing in all rows",
    "opted_out": "an opt-out",
    "missing_required_field": "no value in a required field",
    "not_a_plain_value": "a value that is not plain",
    "data_value_too_long": "a text that is too long",
    "invalid_email": "an invalid email",
    "invalid_profnet_url": "an invalid profile URL",
    "invalid_mailbox": "an invalid mailbox",
    "unknown_mailbox": "an unknown mailbox",
    "mailbox_unusable": "an unusable mailbox",
    "ambiguous_mailbox": "an ambiguous mailbox",
}
_OUTCOME: Final = ["index", "status", "detail", "error_code"]


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
    if client:
        code.append(f"client={client}")
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
        active = status == spec.ACTIVE_MAILBOX_STATUS
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


def plan_content(plan: SubmissionPlan) -> dict[str, Any]:
    """Build the page's content for a plan: headline, facts and the first problems."""
    problems = plan.problems
    shown = problems.head(PROBLEMS_SHOWN)
    return {
        "headline": plan_headline(plan),
        "facts": [
            [fact.name, printable(", ".join([fact.text, *fact.details]))]
            for fact in plan_facts(plan, _problem_text(plan))
        ],
        "problems": [
            [f"{row:,}", *map(_cell, cells)]
            for row, *cells in shown[_PROBLEM].itertuples(index=False, name=None)
        ],
        "problem_count": len(problems),
        "more_problems": len(problems) - len(shown),
    }


def _problem_text(plan: SubmissionPlan) -> str:
    """Count the rows with each problem, in words."""
    counts = plan.problems.groupby("code", sort=False)["row"].nunique()
    ordered = counts.sort_values(ascending=False, kind="stable").items()
    return "; ".join(
        f"{plural(rows, 'row has', 'rows have')} {PROBLEM_WORDS[str(code)]}"
        for code, rows in ordered
    )


def outcome_content(
    report: SubmissionReport, columns: Sequence[str | None], status: str = ""
) -> dict[str, Any]:
    """Build the page's content for a report: counts by status and the first rows of `status`.

    `columns` has the columns with identifiers.
    """
    rows, summary = report.rows, report.summary()
    # The name of an undocumented list in a response becomes a status and may be any text.
    shown_as = {name: printable(name) for name in summary["status"]}
    chosen = rows[rows["status"].map(shown_as) == status]
    if chosen.empty:
        chosen, status = rows, ""
    shown = chosen.head(OUTCOMES_SHOWN)
    leads = _identifiers(report.frame.iloc[shown.index], columns)
    return {
        "summary": [
            [shown_as[name], number, printable(meaning.means), meaning.next]
            for name, count, earlier in summary.itertuples(index=False)
            for number, _, meaning in counted_meanings(name, int(count), int(earlier))
        ],
        "status": status,
        "rows": [
            [f"{row:,}", _cell(label), _cell(lead), shown_as[name], *map(_cell, cells)]
            for lead, (row, label, name, *cells) in zip(
                leads, shown[_OUTCOME].itertuples(name=None), strict=True
            )
        ],
        "more": len(chosen) - len(shown),
    }


def _identifiers(frame: pd.DataFrame, columns: Sequence[str | None]) -> list[str]:
    """Return each row's first identifier, or an empty text."""
    cells = [frame[name].tolist() for name in columns if name is not None]
    return [
        next((shorten(cell) for cell in row if isinstance(cell, str) and cell.strip()), "")
        for row in zip(*cells, strict=True)
    ]


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    return shorten(str(value), 600)
