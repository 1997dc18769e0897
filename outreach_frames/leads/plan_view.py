"""How a plan reads in a terminal."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outreach_frames.leads.plan import SubmissionPlan


def as_text(plan: SubmissionPlan) -> str:
    return f"SubmissionPlan: {len(plan.positions)} of {len(plan.frame)} rows in {len(plan.chunks())} requests"


def as_html(plan: SubmissionPlan) -> str:
    return f"<pre>{escape(as_text(plan))}</pre>"
