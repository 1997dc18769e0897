"""What the page shows of a plan and a report: plain texts and numbers, and the first rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import plural, printable, shorten
from outreach_frames.leads import statuses
from outreach_frames.leads.cards import meaning_of, plan_facts
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.sending.report import SubmissionReport

PROBLEMS_SHOWN: Final = 200
OUTCOMES_SHOWN: Final = 500
_PROBLEM: Final = ["row", "index", "column", "message"]
_OUTCOME: Final = ["index", "status", "detail", "error_code"]

# The status of a row while its plan is being sent, or in a dry run.
WAITING: Final = "waiting"
BEING_SENT: Final = "being sent"
WOULD_BE_SENT: Final = "would be sent"

_MEANINGS_FOR_NOW: Final = {
    WAITING: "Not sent yet.",
    BEING_SENT: "In the request under way.",
    WOULD_BE_SENT: "Ready to be sent; the service checks more than can be foreseen here.",
}
_NEXT_HERE: Final = {
    statuses.INVALID: "Choose other columns and check again, or correct them in a new widget.",
    statuses.REJECTED: "Correct what the detail says, and check rows again: they can be sent.",
    statuses.UNKNOWN: "Look in the web app, or send them once more below.",
    statuses.NOT_SENT: "Check rows again: they can be sent.",
}


def plan_content(plan: SubmissionPlan) -> dict[str, Any]:
    """Return what the page shows of a plan: headline, facts, and the first problems by row."""
    problems = plan.problems
    shown = problems.head(PROBLEMS_SHOWN)
    return {
        "headline": _headline(plan),
        "facts": [[fact.name, printable(fact.text)] for fact in plan_facts(plan)],
        "problems": [
            [f"{row:,}", *map(_cell, cells)]
            for row, *cells in shown[_PROBLEM].itertuples(index=False, name=None)
        ],
        "problem_count": len(problems),
        "more_problems": len(problems) - len(shown),
    }


class Outcomes(NamedTuple):
    """The `rows` of a report, the frame they are about, and the columns that identify its rows.

    A status may also be one of those above.
    """

    rows: pd.DataFrame
    frame: pd.DataFrame
    columns: tuple[str | None, ...]


def outcome_content(outcomes: Outcomes, status: str = "") -> dict[str, Any]:
    """Return what the page shows of outcomes: counts by status, and the first rows.

    Only the rows of `status` are shown, or all where no row has it.
    """
    rows = outcomes.rows
    counts = rows["status"].value_counts(sort=False)
    known = (*statuses.STATUSES, WOULD_BE_SENT, BEING_SENT, WAITING)
    order = [one for one in known if one in counts.index]
    order += [one for one in counts.index if one not in order]
    # A list of the service may have any name, and is a status then.
    shown_as = {one: printable(one) for one in order}
    chosen = rows[rows["status"].map(shown_as) == status]
    if chosen.empty:
        chosen, status = rows, ""
    shown = chosen.head(OUTCOMES_SHOWN)
    named = _identifiers(outcomes, shown.index.tolist())
    return {
        "summary": [[shown_as[one], int(counts[one]), *_meaning(one)] for one in order],
        "status": status,
        "rows": [
            [f"{row:,}", _cell(label), _cell(named.get(row)), shown_as[name], *map(_cell, cells)]
            for row, label, name, *cells in shown[_OUTCOME].itertuples(name=None)
        ],
        "more": len(chosen) - len(shown),
    }


def failed_rows(report: SubmissionReport) -> pd.DataFrame:
    """Return the rows of a report that were not added and not skipped, with their reasons."""
    is_failed = report.rows["status"].map(statuses.kind_of) == "failed"
    return report.frame[is_failed.to_numpy()]


def _identifiers(outcomes: Outcomes, positions: list[int]) -> dict[int, str]:
    """Return what identifies rows, as in their cells: the first of the columns with text."""
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


def _meaning(status: str) -> tuple[str, str]:
    """Return what a status means, and what to do next in this widget."""
    if status in _MEANINGS_FOR_NOW:
        return _MEANINGS_FOR_NOW[status], ""
    meaning = meaning_of(status)
    return printable(meaning.means), _NEXT_HERE.get(status, meaning.next)


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    return shorten(str(value), 600)
