"""The page's content for plans and outcomes: texts, numbers and the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import plural, printable, shorten
from outreach_frames.leads.cards import meaning_of, plan_facts, plan_headline
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.sending.report import SubmissionReport

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
    shown_as = {one: printable(one) for one in summary["status"]}
    chosen = rows[rows["status"].map(shown_as) == status]
    if chosen.empty:
        chosen, status = rows, ""
    shown = chosen.head(OUTCOMES_SHOWN)
    named = _identifiers(report.frame.iloc[shown.index], columns)
    return {
        "summary": [
            [shown_as[one], int(count), *_meaning(one)]
            for one, count, _ in summary.itertuples(index=False)
        ],
        "status": status,
        "rows": [
            [f"{row:,}", _cell(label), _cell(name), shown_as[one], *map(_cell, cells)]
            for name, (row, label, one, *cells) in zip(
                named, shown[_OUTCOME].itertuples(name=None), strict=True
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


def _meaning(status: str) -> tuple[str, str]:
    meaning = meaning_of(status)
    return printable(meaning.means), meaning.next


def _cell(value: Any) -> str:
    if is_missing(value):
        return ""
    return shorten(str(value), 600)
