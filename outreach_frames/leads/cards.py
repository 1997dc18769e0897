"""Display plans and reports, and explain each status."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.card import Card, Details, Fact
from outreach_frames.common.text import plural, quoted, shorten
from outreach_frames.errors import ValidationFailedError
from outreach_frames.leads import statuses
from outreach_frames.leads.planning.checks import OPTED_OUT, PLACEHOLDER_TEXT, TEMPLATE
from outreach_frames.leads.planning.mapping import MAILBOXES
from outreach_frames.leads.planning.opt_outs import opt_out_filter
from outreach_frames.leads.prepared import PreparedLeads
from outreach_frames.tables.columns import usual_names

_LINES_SHOWN: Final = 20
_LINE_LENGTH: Final = 100
_DETAILS_SHOWN: Final = 2
# The maximum number of notes, and of mailboxes, in a card.
_MOST_SHOWN: Final = 10
_CHUNK: Final = re.compile(r"^Chunk \d+: ")


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a status, and the next step."""

    means: str
    next: str = ""


def _override_advice(status: str) -> str:
    """Return advice on the override that skips a status's check, or an empty text."""
    if status == statuses.IN_EXCLUSION_LIST:
        return "These people may have unsubscribed."
    override = statuses.OVERRIDE_OF_STATUS.get(status)
    if override is None:
        return ""
    return f"To add these leads anyway, skip this check: overrides={{'{override}': True}}."


_SKIPPED: Final = {
    statuses.IN_EXCLUSION_LIST: "in the account's exclusion list.",
    "recently_contacted": "contacted recently by the account.",
    statuses.ALREADY_IN_SEQUENCE: "already in this sequence, and unchanged.",
    "in_other_draft_sequences": "in another sequence that is a draft.",
    "in_other_active_sequences": "in another sequence that is active or paused.",
}
MEANINGS: Final[dict[str, Meaning]] = {
    statuses.ADDED: Meaning("In the sequence now."),
    statuses.PRESENT: Meaning("In the sequence; the request that added the lead is unknown."),
    statuses.DUPLICATE_IN_FRAME: Meaning("Another row has the same person and is sent instead."),
    statuses.DUPLICATE_IN_REQUEST: Meaning(
        "The service treated the lead as a duplicate of another row in the request.",
        "Compare these rows with the other rows of the request, and keep one row per person.",
    ),
    **{
        status: Meaning(f"Skipped: {why}", _override_advice(status))
        for status, why in _SKIPPED.items()
    },
    statuses.INVALID: Meaning(
        "Not sent: the row has an error, which the detail names.",
        "Correct the rows and submit them again.",
    ),
    statuses.REJECTED: Meaning(
        "Not added: the service refused the request.",
        "Correct the error in the detail, and submit the rows again.",
    ),
    statuses.UNKNOWN: Meaning(
        "Sent, but no response proves the outcome: the lead may be in the sequence.",
        "Look for the lead in the web app, or call report.retry_unknown().",
    ),
    statuses.NOT_SENT: Meaning(
        "Not sent: the run ended early, the sequence accepts no leads, or no record exists.",
        "Repeat the call, with the same journal if you passed one.",
    ),
    statuses.WOULD_SEND: Meaning("Ready to be sent.", "Submit without dry_run."),
}


_EARLIER: Final = "Recorded by an earlier run; not asked again."


def meaning_of(status: str) -> Meaning:
    """Return a status's meaning; an undocumented status comes from a list of skipped leads.

    >>> meaning_of("on_holiday").means
    'Skipped: listed by the service in on_holiday_and_skipped.'
    """
    listed = f"{status.removesuffix(spec.SKIPPED_SUFFIX)}{spec.SKIPPED_SUFFIX}"
    return MEANINGS.get(status) or Meaning(f"Skipped: listed by the service in {listed}.")


def plan_card(plan: PreparedLeads, recorded: Mapping[str, int]) -> Card:
    """Build the card of a plan; `recorded` has the number of other leads per recorded status."""
    facts = plan_facts(plan)
    if recorded:
        counts = ", ".join(f"{status} {leads:,}" for status, leads in recorded.items())
        words = f"{plural(sum(recorded.values()), 'lead')}, recorded in this Python session"
        facts.append(Fact("Sent before", f"{words}: not sent again ({counts})"))
    return Card(
        headline=f"SubmissionPlan: {plan_headline(plan)}",
        facts=facts,
        details=[Details("First lead", _first_lead(plan), is_code=True)],
        advice=(
            "plan.submit() sends this plan; until then, nothing is sent. plan.problems lists all "
            "problems, plan.payloads() all requests. The service may still skip or refuse leads. "
            "If a journal has recorded some of the rows, plan.submit(journal=path, dry_run=True) "
            "reports which rows remain."
        ),
    )


def plan_headline(plan: PreparedLeads) -> str:
    """Return the numbers of leads, rows and requests of a plan, or why no row is sent."""
    sent, requests = len(plan.positions), plural(len(plan.chunks()), "request")
    rows = plural(len(plan.frame), "row")
    if why := refusal(plan):
        return f"0 of {rows} will be sent: {why}."
    return f"{sent:,} of {rows} will be sent, in {requests} of at most {plan.chunk_size} leads."


def refusal(plan: PreparedLeads) -> str:
    """Return why no row of a plan is sent, by its frame or its sequence's status, or ""."""
    return plan.sequence.refusal if len(plan.frame) else "the frame has no rows"


def plan_facts(plan: PreparedLeads, problem_text: str = "") -> list[Fact]:
    """Return facts on a plan's sequence, unsent rows, problems, settings and overrides.

    By default, the problems are counted by their codes. They are those of the rows to send, of
    their duplicates and of invalid rows.
    """
    unsent = plan.unsent["status"].value_counts()
    invalid, duplicates = (
        int(unsent.get(status, 0)) for status in (statuses.INVALID, statuses.DUPLICATE_IN_FRAME)
    )
    problems = _current_problems(plan)
    boxes = ", ".join(plan.settings.get(MAILBOXES, ()))
    overrides = ", ".join(f"{name} for {leads:,}" for name, leads in plan.overrides.items())
    codes = ", ".join(f"{code} {rows:,}" for code, rows in problems["code"].value_counts().items())
    return [
        Fact("Sequence", _sequence(plan)),
        Fact("Not sent", f"{plural(invalid, 'invalid row')}, {plural(duplicates, 'duplicate')}"),
        *_optional_facts(plan, problems),
        *_data_facts(plan, problems),
        Fact("Problems", problem_text or codes or "none"),
        Fact("Settings", f"mailboxes: {boxes}" if boxes else "the service's defaults"),
        *_mailbox_facts(plan),
        Fact("Overrides", overrides or "none (the service runs all checks)"),
    ]


def _current_problems(plan: PreparedLeads) -> pd.DataFrame:
    """Return the problems of invalid rows, and of rows whose person the plan sends."""
    problems = plan.problems
    is_current = plan.is_planned(np.arange(len(plan.kept))) | ~plan.checked.is_valid
    return problems[problems["row"].isin(np.flatnonzero(is_current))]


def _optional_facts(plan: PreparedLeads, problems: pd.DataFrame) -> Iterator[Fact]:
    """Yield the number of leads without an email, and of repaired cells, if there are any."""
    if lacking := plan.emails.take(pa.array(plan.positions)).null_count:
        without = "a sequence with email steps refuses these, and their activity cannot be read"
        yield Fact("Without an email", f"{plural(lacking, 'lead')}: {without}")
    for field in spec.LEAD_IDENTIFIERS:
        if field not in plan.checked.identifiers:
            for name in usual_names(field, plan.frame.columns):
                yield Fact(
                    "Not used", f"{quoted(name)}; to send it, pass {terms.argument(field, name)}"
                )
    if opted_out := problems.loc[problems["code"].eq(OPTED_OUT), "row"].nunique():
        rows = plural(opted_out, "row")
        yield Fact("Opted out", f"{rows}; to leave them out: {opt_out_filter(plan.frame)}")
    if plan.repaired:
        yield Fact("Repaired", plan.repaired)


def _data_facts(plan: PreparedLeads, problems: pd.DataFrame) -> Iterator[Fact]:
    """Yield per data field how many of the leads lack it, or have another text for it."""
    rows = pa.array(plan.positions)
    problems = problems[problems["row"].isin(plan.positions)]
    templates, placeholders = (
        problems.loc[problems["code"].eq(code), "field"].value_counts()
        for code in (TEMPLATE, PLACEHOLDER_TEXT)
    )
    complete: list[str] = []
    incomplete: list[str] = []
    for field, texts in plan.checked.data.items():
        counts = {
            "missing": texts.take(rows).null_count,
            "an unfilled template": int(templates.get(field, 0)),
            "a placeholder": int(placeholders.get(field, 0)),
        }
        gaps = [f"{what} in {plural(leads, 'lead')}" for what, leads in counts.items() if leads]
        lines = incomplete if gaps else complete
        lines.append(f"{field}: {', '.join(gaps) or 'in all leads'}")
    if lines := _first_lines([*incomplete, *complete], "plan.payloads()"):
        yield Fact("Data fields", lines[0], details=lines[1:])


def _sequence(plan: PreparedLeads) -> str:
    known = plan.sequence
    if known.name is None and known.status is None:
        return f"{plan.sequence_id} (status unknown: {known.why or 'missing in the response'})"
    return f"{known.name or plan.sequence_id}, {known.status or 'status unknown'}"


def _mailbox_facts(plan: PreparedLeads) -> Iterator[Fact]:
    """Yield the number of leads per mailbox, if the plan has a mailbox column."""
    if plan.checked.mailboxes is None:
        return
    counts = plan.mailboxes
    own = [f"{mailbox} {leads:,}" for mailbox, leads in counts.items()]
    lines = _first_lines(own, "plan.mailboxes")
    if rest := len(plan.positions) - sum(counts.values()):
        senders = "the mailboxes in the settings" if plan.settings else "the sequence's senders"
        lines.append(f"{senders} {rest:,}")
    yield Fact("Leads per mailbox", lines[0] if lines else "none", details=lines[1:])


def _first_lead(plan: PreparedLeads) -> list[str]:
    text = json.dumps(plan.leads(plan.positions[:1]), indent=2, ensure_ascii=False)
    lines = [line.removeprefix("  ") for line in text.splitlines()[1:-1]]
    shown = [shorten(line, _LINE_LENGTH) for line in lines[:_LINES_SHOWN]]
    return shown if len(lines) <= _LINES_SHOWN else [*shown, "…"]


def report_card(
    rows: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    where: str,
    notes: Sequence[str],
    error: Exception | None,
    is_dry_run: bool,
    is_read: bool,
) -> Card:
    """Build the card of a report from its attributes; `is_read`: it was read from a journal."""
    # All chunks of a report that was read are of earlier runs.
    sent = rows.assign(earlier_run=False) if is_read else rows
    alert = "" if error is None else str(error)
    facts = [
        Fact(status, meaning.means, count, [*_shown_details(details, alert)], meaning.next)
        for status, count, meaning, details in _meanings(rows, summary)
    ]
    shown = "\n".join(line for fact in facts for line in fact.details)
    problems = error.validation_errors if isinstance(error, ValidationFailedError) else []
    is_error_shown = all(
        message in shown for message in [problem.message for problem in problems] or [alert]
    )
    other_notes = [note for note in notes if _CHUNK.sub("", note) not in shown]
    return Card(
        headline=_report_headline(sent, where, is_dry_run=is_dry_run),
        columns=("Status", "Rows", "Meaning"),
        facts=facts,
        alert="" if is_error_shown else alert,
        details=[Details("Other messages", _first_lines(other_notes, "report.notes"))],
        advice=(
            "Rows with outcomes: report.frame; as files: report.to_csv(folder); "
            "the other messages: report.notes."
        ),
    )


def _report_headline(rows: pd.DataFrame, where: str, *, is_dry_run: bool) -> str:
    what = f"{plural(len(rows), 'row')} {where}"
    if is_dry_run:
        return f"Nothing was sent (dry run): {what}"
    chunks = rows.loc[(rows["attempts"] > 0) & ~rows["earlier_run"], "chunk"].nunique()
    if not chunks:
        return f"{what}, no row was sent"
    return f"{what}, sent in {plural(chunks, 'chunk')}"


def _meanings(
    rows: pd.DataFrame, summary: pd.DataFrame
) -> Iterator[tuple[str, int, Meaning, pd.Series[Any]]]:
    """Yield each status with its rows' number, meaning and details, apart for earlier runs."""
    for status, count, earlier in summary.itertuples(index=False, name=None):
        for number, is_earlier, meaning in counted_meanings(status, int(count), int(earlier)):
            is_shown = rows["status"].eq(status)
            if status != statuses.DUPLICATE_IN_FRAME:
                is_shown &= rows["earlier_run"].eq(is_earlier)
            yield status, number, meaning, rows.loc[is_shown, "detail"]


def counted_meanings(status: str, rows: int, earlier: int) -> Iterator[tuple[int, bool, Meaning]]:
    """Yield the number of new rows of a status, and that of earlier runs, with their meanings.

    >>> [(rows, meaning.means) for rows, _, meaning in counted_meanings("added", 3, 2)]
    [(1, 'In the sequence now.'), (2, 'Recorded by an earlier run; not asked again.')]
    """
    meaning = meaning_of(status)
    if status == statuses.DUPLICATE_IN_FRAME:
        earlier = 0
    if rows > earlier:
        yield rows - earlier, False, meaning
    if earlier:
        yield earlier, True, Meaning(_EARLIER, meaning.next)


def _shown_details(details: pd.Series[Any], error: str) -> Iterator[str]:
    """Yield the most frequent details with their row counts, and the report's error only once."""
    counts = details[details.fillna("") != ""].value_counts()
    shown = ""
    for text in sorted(counts.index[:_DETAILS_SHOWN], key=len):
        reason = text if text == error else text.removesuffix(error).rstrip(": ")
        if shown:
            reason = reason.removeprefix(shown).strip()
        shown = text
        yield f"{reason} ({plural(counts[text], 'row')})"
    if len(counts) > _DETAILS_SHOWN:
        yield f"and {plural(len(counts) - _DETAILS_SHOWN, 'other detail')}"


def _first_lines(lines: Sequence[str], where: str) -> list[str]:
    """Return the first lines, and the number of others."""
    if len(lines) <= _MOST_SHOWN:
        return [*lines]
    return [*lines[:_MOST_SHOWN], f"and {len(lines) - _MOST_SHOWN:,} more, in {where}"]
