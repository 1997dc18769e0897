"""How a plan reads in a terminal and in a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Final

from outreach_frames.common.text import plural, shorten
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.mapping import OVERRIDES
from outreach_frames.leads.prepared import PreparedLeads

_LINES_SHOWN: Final = 20
_LINE_LENGTH: Final = 100
_ADVICE: Final = (
    "Nothing is sent yet: plan.submit() sends this. plan.problems has every problem, "
    "plan.payloads() every request. The service checks more than this plan can foresee."
)


def as_text(plan: PreparedLeads) -> str:
    """Return a plan as lines for a terminal."""
    facts = list(_facts(plan))
    width = max(len(name) for name, _ in facts)
    lines = [f"  {name:<{width}}  {value}" for name, value in facts]
    if lead := _first_lead(plan):
        lines += ["  First lead:", *(f"    {line}" for line in lead)]
    return "\n".join([_headline(plan), *lines, _ADVICE])


def as_html(plan: PreparedLeads) -> str:
    """Return a plan as HTML for a notebook; its colours are those around it, light or dark."""
    cell = "text-align:left;vertical-align:top;padding:3px 12px 3px 0"
    rows = "".join(
        f'<tr style="background:none"><th style="{cell}">{escape(name)}</th>'
        f'<td style="{cell};overflow-wrap:anywhere">{escape(value)}</td></tr>'
        for name, value in _facts(plan)
    )
    parts = [
        f"<p><b>{escape(_headline(plan))}</b></p>",
        '<table style="color:inherit;font-size:inherit;border-collapse:collapse">'
        f"<tbody>{rows}</tbody></table>",
    ]
    if lead := _first_lead(plan):
        text = escape("\n".join(lead))
        parts.append(f"<details open><summary>First lead</summary><pre>{text}</pre></details>")
    parts.append(f"<p><small>{escape(_ADVICE)}</small></p>")
    return f"<div>{''.join(parts)}</div>"


def _headline(plan: PreparedLeads) -> str:
    sent, rows, requests = len(plan.positions), len(plan.frame), len(plan.chunks())
    return (
        f"SubmissionPlan: {sent:,} of {plural(rows, 'row')} will be sent, in "
        f"{plural(requests, 'request')} of at most {plan.chunk_size} leads."
    )


def _facts(plan: PreparedLeads) -> Iterator[tuple[str, str]]:
    yield "Sequence", _sequence(plan)
    counts = plan.outcome_of_unsent()["status"].value_counts()
    invalid, duplicates = (
        int(counts.get(status, 0)) for status in (statuses.INVALID, statuses.DUPLICATE_IN_FRAME)
    )
    yield "Not sent", f"{invalid:,} invalid, {duplicates:,} the same person as an earlier row"
    problems = plan.problems["code"].value_counts()
    yield "Problems", ", ".join(f"{code} {rows:,}" for code, rows in problems.items()) or "none"
    settings = "; ".join(
        f"{name}: {', '.join(value) if isinstance(value, tuple) else value}"
        for name, value in plan.settings.items()
    )
    yield "Settings", settings or "the service's defaults"
    overrides = ", ".join(
        f"{name} for {plan.overrides[name]:,}" for name in OVERRIDES if name in plan.overrides
    )
    yield "Overrides", overrides or "none: the service makes all its checks"


def _sequence(plan: PreparedLeads) -> str:
    known = plan.sequence
    if known.name is None and known.status is None:
        return f"{plan.sequence_id} (status not known: {known.why or 'the service gave none'})"
    return f"{known.name or plan.sequence_id}, {known.status or 'status not known'}"


def _first_lead(plan: PreparedLeads) -> list[str]:
    text = json.dumps(plan.leads(plan.positions[:1]), indent=2, ensure_ascii=False)
    lines = [line.removeprefix("  ") for line in text.splitlines()[1:-1]]
    shown = [shorten(line, _LINE_LENGTH) for line in lines[:_LINES_SHOWN]]
    return shown if len(lines) <= _LINES_SHOWN else [*shown, "…"]
