"""The page's content for plans and outcomes: texts, numbers and the first rows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import printable, shorten
from outreach_frames.leads import statuses
from outreach_frames.leads.cards import meaning_of, plan_facts, plan_headline
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.sending.report import SubmissionReport

PROBLEMS_SHOWN: Final = 200
OUTCOMES_SHOWN: Final = 500
_PROBLEM: Final = ["row", "index", "column", "message"]
_OUTCOME: Final = ["index", "status", "detail", "error_code"]

# Next steps in this widget, shown instead of the next steps in scripts.
_NEXT_STEPS: Final = {
    **dict.fromkeys(
        (name.removesuffix(spec.SKIPPED_SUFFIX) for name in spec.CHECK_OVERRIDES),
        "To contact these people anyway, skip this check in section 3 and check rows again.",
    ),
    statuses.INVALID: "Correct the rows and make a new widget, or, if no rows have arrived yet, "
    "choose other columns and check rows again.",
    statuses.REJECTED: "Change the choices here and check rows again, or correct the rows and make "
    "a new widget.",
    statuses.UNKNOWN: "Check the web app, or send these rows once more below.",
    statuses.NOT_SENT: "Check rows again to send them.",
    statuses.WOULD_SEND: "The service may still skip or reject the row.",
}


def plan_content(plan: SubmissionPlan) -> dict[str, Any]:
    """Build the page's content for a plan: headline, facts and the first problems."""
    problems = plan.problems
    shown = problems.head(PROBLEMS_SHOWN)
    return {
        "headline": plan_headline(plan),
        "facts": [
            [fact.name, printable(", ".join([fact.text, *fact.details]))]
            for fact in plan_facts(plan)
        ],
        "problems": [
            [f"{row:,}", *map(_cell, cells)]
            for row, *cells in shown[_PROBLEM].itertuples(index=False, name=None)
        ],
        "problem_count": len(problems),
        "more_problems": len(problems) - len(shown),
    }


class Outcomes(NamedTuple):
    """The rows of a report, and their frame."""

    rows: pd.DataFrame
    frame: pd.DataFrame
    columns: tuple[str | None, ...]  # with identifiers


def outcome_content(outcomes: Outcomes, status: str = "") -> dict[str, Any]:
    """Build the page's content for outcomes: counts by status and the first rows of `status`."""
    rows = outcomes.rows
    counts = rows["status"].value_counts(sort=False)
    order = [one for one in statuses.STATUSES if one in counts.index]
    order += [one for one in counts.index if one not in order]
    # The name of an undocumented list in a response becomes a status and may be any text.
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
    """Return the failed rows (neither added nor skipped) with the reasons."""
    is_failed = report.rows["status"].map(statuses.kind_of) == "failed"
    return report.frame[is_failed.to_numpy()]


def _identifiers(outcomes: Outcomes, positions: list[int]) -> dict[int, str]:
    """Return the first identifier per row; rows without identifiers are omitted."""
    taken: dict[int, str] = {}
    for name in outcomes.columns:
        if name is not None:
            cells = outcomes.frame[name].iloc[positions].tolist()
            for position, cell in zip(positions, cells, strict=True):
                if isinstance(cell, str) and cell.strip():
                    taken.setdefault(position, shorten(cell))
    return taken


def _meaning(status: str) -> tuple[str, str]:
    meaning = meaning_of(status)
    return printable(meaning.means), _NEXT_STEPS.get(status, meaning.next)


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    return shorten(str(value), 600)
