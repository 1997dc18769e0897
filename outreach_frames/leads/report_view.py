"""How a report reads in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final, Protocol

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.text import plural
from outreach_frames.errors import OutreachError
from outreach_frames.leads import statuses

_NOTES_SHOWN: Final = 10
_DETAILS_SHOWN: Final = 2


class Report(Protocol):
    """What is shown of a report."""

    rows: pd.DataFrame
    notes: list[str]

    @property
    def sequence_id(self) -> str: ...  # noqa: D102
    @property
    def error(self) -> OutreachError | None: ...  # noqa: D102
    @property
    def dry_run(self) -> bool: ...  # noqa: D102
    def summary(self) -> pd.DataFrame: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a status means, and what the analyst does next."""

    means: str
    next: str = ""


def _skipped(why: str, status: str) -> Meaning:
    override = spec.CHECK_OVERRIDES.get(f"{status}{spec.SKIPPED_SUFFIX}")
    advice = f"This check can be left out by overrides={{'{override}': True}}." if override else ""
    return Meaning(why, advice)


MEANINGS: Final[dict[str, Meaning]] = {
    statuses.ADDED: Meaning("In the sequence now."),
    statuses.PRESENT: Meaning(
        "In the sequence; by which of the requests cannot be told.",
    ),
    statuses.DUPLICATE_IN_FRAME: Meaning(
        "Same email or profile URL as an earlier row, which stands for it; not sent."
    ),
    statuses.DUPLICATE_IN_REQUEST: Meaning(
        "The service took it for the same as another row of the request.",
        "Compare these rows with the rest; one of each pair is enough.",
    ),
    "in_exclusion_list": _skipped("Skipped: in the account's exclusion list.", "in_exclusion_list"),
    "recently_contacted": _skipped(
        "Skipped: the account contacted them recently.", "recently_contacted"
    ),
    statuses.ALREADY_IN_SEQUENCE: Meaning(
        "Skipped: they were in this sequence before; nothing about them was changed."
    ),
    "in_other_draft_sequences": _skipped(
        "Skipped: in another sequence that is a draft.", "in_other_draft_sequences"
    ),
    "in_other_active_sequences": _skipped(
        "Skipped: in another sequence that is active or paused.", "in_other_active_sequences"
    ),
    statuses.INVALID: Meaning(
        "Not sent: something in the row is wrong.",
        "Correct the rows and submit them again; the detail says what is wrong.",
    ),
    statuses.REJECTED: Meaning(
        "The service refused the request that they were in; not added.",
        "Correct what the detail says, and submit them again.",
    ),
    statuses.UNKNOWN: Meaning(
        "Sent, but no answer proves what became of them; they may be in the sequence.",
        "Look in the web app, or call report.retry_unknown().",
    ),
    statuses.NOT_SENT: Meaning(
        "Not sent: the run ended before their turn.",
        "Run the same call again with its journal; without one, plan these rows anew.",
    ),
}


def meaning_of(status: str) -> Meaning:
    """Return what a status means; one that nobody knows is a list of the service.

    >>> meaning_of("on_holiday").means
    'Skipped: the service lists them in on_holiday_and_skipped.'
    """
    listed = f"{status.removesuffix(spec.SKIPPED_SUFFIX)}{spec.SKIPPED_SUFFIX}"
    return MEANINGS.get(status) or Meaning(f"Skipped: the service lists them in {listed}.")


_DRY_RUN: Final = Meaning("Ready: they would be sent.", "Submit without dry_run.")


def as_text(report: Report) -> str:
    """Return a report as lines for a terminal."""
    lines = [_headline(report)]
    table = list(_table(report))
    width = max((len(status) for status, *_ in table), default=0)
    for status, rows, meaning, details in table:
        lines.append(f"  {status:<{width}}  {rows:>7,}  {meaning.means}")
        more = [*details, *([meaning.next] if meaning.next else [])]
        lines += [f"{'':{width + 13}}{line}" for line in more]
    if report.error is not None:
        lines.append(f"Stopped early: {report.error}")
    lines += [f"Note: {note}" for note in _notes(report)]
    lines.append(_ADVICE)
    return "\n".join(lines)


def as_html(report: Report) -> str:
    """Return a report as HTML for a notebook; its colours are those around it, light or dark."""
    cell = "text-align:left;vertical-align:top;padding:3px 12px 3px 0;overflow-wrap:normal"
    titles = ("Status", "Rows", "What it means")
    head = "".join(f'<th style="{cell}">{title}</th>' for title in titles)
    body = []
    for status, rows, meaning, details in _table(report):
        more = "".join(f'<br><span style="opacity:.8">{escape(text)}</span>' for text in details)
        advice = f"<br><i>{escape(meaning.next)}</i>" if meaning.next else ""
        body.append(
            f'<tr style="background:none"><td style="{cell}"><b>{escape(status)}</b></td>'
            f'<td style="{cell};text-align:right">{rows:,}</td>'
            f'<td style="{cell};overflow-wrap:anywhere">{escape(meaning.means)}{more}{advice}</td>'
            "</tr>"
        )
    parts = [f"<p><b>{escape(_headline(report))}</b></p>"]
    if report.error is not None:
        parts.append(f"<p><b>Stopped early:</b> {escape(str(report.error))}</p>")
    if body:
        parts.append(
            '<table style="color:inherit;font-size:inherit;border-collapse:collapse">'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )
    if notes := list(_notes(report)):
        items = "".join(f"<li>{escape(note)}</li>" for note in notes)
        parts.append(f"<p>Notes on the service's answers:</p><ul>{items}</ul>")
    parts.append(f"<p><small>{escape(_ADVICE)}</small></p>")
    return f'<div style="overflow-wrap:anywhere">{"".join(parts)}</div>'


_ADVICE: Final = (
    "Each row with its outcome: report.frame; as files: report.to_csv(folder); "
    "what the service said: report.notes."
)


def _headline(report: Report) -> str:
    rows = f"{plural(len(report.rows), 'row')} for sequence {report.sequence_id}"
    if report.dry_run:
        return f"Nothing was sent (dry run): {rows}"
    chunks = report.rows.loc[report.rows["attempts"] > 0, "chunk"].nunique()
    return f"{rows}, sent in {plural(chunks, 'chunk')}" if chunks else f"{rows}, none was sent"


def _table(report: Report) -> Iterator[tuple[str, int, Meaning, list[str]]]:
    summary = report.summary()
    for status, rows in zip(summary["status"], summary["rows"], strict=True):
        if report.dry_run and status == statuses.NOT_SENT:
            yield status, rows, _DRY_RUN, []
        else:
            yield status, rows, meaning_of(status), _details(report, status)


def _details(report: Report, status: str) -> list[str]:
    """Return the most frequent details of a status, with how often each occurs."""
    details = report.rows.loc[report.rows["status"] == status, "detail"]
    counts = details[details.fillna("") != ""].value_counts()
    shown = [f"{text} ({plural(count, 'row')})" for text, count in counts.items()][:_DETAILS_SHOWN]
    rest = len(counts) - len(shown)
    return [*shown, f"and {plural(rest, 'other detail')}"] if rest else shown


def _notes(report: Report) -> Iterator[str]:
    yield from report.notes[:_NOTES_SHOWN]
    rest = len(report.notes) - _NOTES_SHOWN
    if rest > 0:
        yield f"and {plural(rest, 'other note')}, in report.notes"
