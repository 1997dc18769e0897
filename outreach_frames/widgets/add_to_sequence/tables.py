"""What a plan and a report show in the page: plain texts and numbers, and first parts of tables."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import plural, shorten
from outreach_frames.leads import statuses
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.mapping import OVERRIDES
from outreach_frames.leads.report_view import meaning_of
from outreach_frames.leads.sending.report import SubmissionReport

PROBLEMS_SHOWN: Final = 200
OUTCOMES_SHOWN: Final = 500

# What a row is while its plan is being sent, or would be if it were.
WAITING: Final = "waiting"
BEING_SENT: Final = "being sent"
WOULD_BE_SENT: Final = "would be sent"

_WORDS_FOR_NOW: Final = {
    WAITING: "Not sent yet.",
    BEING_SENT: "In the request under way.",
    WOULD_BE_SENT: "Ready to be sent; the service checks more than can be foreseen.",
}
_NEXT_HERE: Final = {
    statuses.INVALID: "Correct the rows, and put them into a new widget.",
    statuses.REJECTED: "Change what the detail says, and check rows again: they can be sent.",
    statuses.UNKNOWN: "Look in the web app, or send them once more below.",
    statuses.NOT_SENT: "Check rows again: they can be sent.",
}


def plan_content(plan: SubmissionPlan) -> dict[str, Any]:
    """Return what the page shows of a plan: headline, facts, problems by row and how many more."""
    problems = plan.problems
    shown = problems.head(PROBLEMS_SHOWN)
    return {
        "headline": _headline(plan),
        "facts": _facts(plan),
        "problems": [
            [f"{row:,}", _cell(label), _cell(column), message]
            for row, label, column, message in zip(
                *(shown[name].tolist() for name in ("row", "index", "column", "message")),
                strict=True,
            )
        ],
        "problem_count": len(problems),
        "more_problems": len(problems) - len(shown),
    }


class Outcomes(NamedTuple):
    """The `rows` of a report, the frame that they are about, and the columns that identify it.

    A row's status may be one of the words above.
    """

    rows: pd.DataFrame
    frame: pd.DataFrame
    columns: tuple[str | None, ...]


def outcome_content(outcomes: Outcomes, status: str = "") -> dict[str, Any]:
    """Return what the page shows of outcomes: counts by status, and a first part of the rows.

    `status` lets only rows of that status pass; one that no row has lets all pass.
    """
    rows = outcomes.rows
    counts = rows["status"].value_counts(sort=False)
    known = (*statuses.STATUSES, WOULD_BE_SENT, BEING_SENT, WAITING)
    order = [one for one in known if one in counts.index]
    order += [one for one in counts.index if one not in order]
    status = status if status in order else ""
    chosen = rows[rows["status"] == status] if status else rows
    shown = chosen.head(OUTCOMES_SHOWN)
    named = _identifiers(outcomes, shown.index.tolist())
    return {
        "summary": [[one, int(counts[one]), *_meaning(one)] for one in order],
        "status": status,
        "rows": [
            [
                f"{position:,}",
                _cell(label),
                _cell(named.get(position)),
                row_status,
                _cell(detail),
                _cell(code),
            ]
            for position, label, row_status, detail, code in zip(
                shown.index.tolist(),
                *(shown[name].tolist() for name in ("index", "status", "detail", "error_code")),
                strict=True,
            )
        ],
        "more": len(chosen) - len(shown),
    }


def failed_rows(report: SubmissionReport) -> pd.DataFrame:
    """Return the rows of a report that were not added and not skipped, with their reasons."""
    is_failed = report.rows["status"].map(statuses.kind_of) == "failed"
    return report.frame[is_failed.to_numpy()]


def _identifiers(outcomes: Outcomes, positions: list[int]) -> dict[int, str]:
    """Return what identifies rows, as their cells have it: the first of the columns with text."""
    taken: dict[int, str] = {}
    for name in outcomes.columns:
        if name is not None:
            cells = outcomes.frame[name].iloc[positions].tolist()
            for position, cell in zip(positions, cells, strict=True):
                if isinstance(cell, str) and cell.strip():
                    taken.setdefault(position, shorten(cell))
    return taken


def _headline(plan: SubmissionPlan) -> str:
    sent, rows = len(plan.positions), len(plan.frame)
    if not sent:
        return f"None of {plural(rows, 'row')} would be sent."
    requests = plural(len(plan.chunks()), "request")
    return f"{sent:,} of {plural(rows, 'row')} will be sent, in {requests}."


def _facts(plan: SubmissionPlan) -> list[list[str]]:
    unsent = plan.outcome_of_unsent()["status"].value_counts()
    invalid, duplicates = (
        int(unsent.get(one, 0)) for one in (statuses.INVALID, statuses.DUPLICATE_IN_FRAME)
    )
    facts = [
        ["Invalid", f"{plural(invalid, 'row')}, not sent"],
        ["Duplicates", f"{plural(duplicates, 'row')}, the same person as an earlier one; not sent"],
    ]
    settings = "; ".join(
        f"{name}: {', '.join(value) if isinstance(value, tuple) else value}"
        for name, value in plan.settings.items()
    )
    overrides = ", ".join(name for name in OVERRIDES if name in plan.overrides)
    facts.append(["Overrides", overrides or "none: the service makes all its checks"])
    facts.append(["Settings", settings or "the service's defaults"])
    return facts


def _meaning(status: str) -> tuple[str, str]:
    """Return what a status means, and what to do next in the widget."""
    if status in _WORDS_FOR_NOW:
        return _WORDS_FOR_NOW[status], ""
    meaning = meaning_of(status)
    return meaning.means, _NEXT_HERE.get(status, meaning.next)


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    return shorten(str(value), 600)
