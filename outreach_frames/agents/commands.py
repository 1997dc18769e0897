"""The commands `mcp`, which serves tools to an agent, and `approve`, which sends its plans."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import outreach_frames as of
from outreach_frames.agents.folder import Folder
from outreach_frames.agents.plan_file import SavedPlan, journal_of, read_plan, record_approval
from outreach_frames.commands.options import (
    EXIT_NOT_ALL_ADDED,
    EXIT_OK,
    Command,
    add_rate,
    add_service,
    connected,
    option,
)
from outreach_frames.commands.terminal import fit_lines, print_card, print_text, signals_as_ctrl_c
from outreach_frames.common import terms
from outreach_frames.common.card import Card, Fact, as_text
from outreach_frames.common.text import plural, printable, quoted, shorten
from outreach_frames.errors import ConfigurationError, InvalidInputError
from outreach_frames.leads.cards import plan_facts, refusal
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.planning.mapping import read_send_again
from outreach_frames.leads.planning.sequence_status import look_up
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import retry_unknown, rows_to_send
from outreach_frames.leads.statuses import IN_SEQUENCE, UNKNOWN

_MAX_AGE: Final = timedelta(hours=24)
_LEADS_SHOWN: Final = 3
_MAX_LEAD_LENGTH: Final = 2000


def _run_mcp(options: argparse.Namespace) -> None:
    try:
        from outreach_frames.agents.server import serve  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise ConfigurationError(
            f'mcp needs the library mcp ({error}). Install it: pip install "outreach-frames[mcp]"'
        ) from error
    folder = Folder(options.folder)
    with connected(options) as client, terms.shell_terms({}):  # the agent calls functions
        serve(client, folder, options.rows)


def _run_approve(options: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInputError(
            "approve asks a person: run it in a terminal, and do not redirect its input or output. "
            "Nothing was sent."
        )
    plan, contents = read_plan(Folder(options.plan.parent), options.plan.name)
    if not timedelta(0) <= datetime.now(UTC) - plan.created_at <= _MAX_AGE:
        raise InvalidInputError(
            f"The plan is of {plan.created_at}, which is not in the last 24 hours. Plan again. "
            "Nothing was sent."
        )
    rate = options.requests_per_minute
    with (
        of.connect(profile=options.profile, requests_per_minute=rate) as client,
        signals_as_ctrl_c(),
    ):
        if plan.account != client._session.account:
            raise InvalidInputError(
                f"The plan is for another account or token than that of {client.base_url}. Pass "
                "--profile NAME, or plan again. Nothing was sent."
            )
        prepared = plan.prepare(contents, client)
        if prepared.sequence.why:
            sequence = look_up(plan.sequence_id, client, all_pages=True)
            prepared = replace(prepared, sequence=sequence)
        sequence = prepared.sequence
        if sequence.why:
            raise InvalidInputError(
                f"The sequence {quoted(plan.sequence_id)} was not found: {sequence.why}. Nothing "
                "was sent."
            )
        name = " ".join(printable(sequence.name or "").split()) or plan.sequence_id
        journal = journal_of(plan)
        with suppress(OSError):  # `submit` raises an error if the folder is missing
            journal.parent.mkdir(0o700, parents=True, exist_ok=True)
        # What is shown is what is sent: rows that earlier approvals have sent are in neither.
        again, retry = read_send_again(options.send_again), options.retry_unknown
        if again and retry:
            raise InvalidInputError("Pass --send-again or --retry-unknown. Nothing was sent.")
        rows = rows_to_send(prepared, journal, send_again=again, resend_unknown=retry)
        remaining = prepared.only(rows)
        preview = remaining.submit(journal=journal, dry_run=True, send_again=[*again])
        for line in _describe_recorded(prepared, remaining, preview):
            print_text(line)
        target = Fact("Sequence", f"{name}, {sequence.status} ({plan.sequence_id})")
        _show(plan, remaining, [Fact("Service", client.base_url), target])
        typed, leads = "", plural(len(remaining.positions), "lead")
        with suppress(EOFError):
            typed = input(f"To send {leads}, type the sequence's name: ")
        if " ".join(typed.split()) != name:
            raise InvalidInputError("Another name was typed. Nothing was sent.")
        record_approval(plan)
        if retry:
            report = retry_unknown(remaining, journal)
        else:
            report = remaining.submit(journal=journal, send_again=[*again])
        print_card(report._card())
        if options.results is not None:
            report.to_csv(options.results)
    status = report.rows["status"]
    is_done = status.ne(UNKNOWN) if retry else status.isin(IN_SEQUENCE)
    return EXIT_OK if is_done.all() else EXIT_NOT_ALL_ADDED


def _describe_recorded(
    prepared: SubmissionPlan, remaining: SubmissionPlan, preview: SubmissionReport
) -> Iterator[str]:
    """Yield what earlier approvals have sent of a plan, and what remains."""
    rows = preview.rows[preview.rows["attempts"] > 0]
    if rows.empty:
        return
    days = rows["sent_at"].dt.strftime(" on %Y-%m-%d (UTC)").fillna("")
    outcomes = (rows["status"] + days).value_counts(sort=False)
    known = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
    yield (
        f"Earlier approvals have sent leads of this plan: {len(remaining.positions):,} of "
        f"{plural(len(prepared.positions), 'row')} remain. Recorded: {known}."
    )


def _show(plan: SavedPlan, remaining: SubmissionPlan, target: list[Fact]) -> None:
    """Print the first leads as they are sent, and facts about all leads that remain."""
    for lead in remaining.leads(remaining.positions[:_LEADS_SHOWN]):
        text = shorten(json.dumps(lead, ensure_ascii=False), _MAX_LEAD_LENGTH)
        # The marks show that a line belongs to a lead, whatever its text resembles.
        print_text(textwrap.fill(text, 78, initial_indent="* ", subsequent_indent="| "))
    data = plan.arguments.get("data")
    columns = data if isinstance(data, dict) else {}
    fields = [
        f"{field} from {quoted(columns.get(field, field))}" for field in remaining.checked.data
    ]
    facts = [*target, Fact("Data", ", ".join(fields) or "none"), *plan_facts(remaining)[1:]]
    print_text(fit_lines(as_text(Card(_headline(plan, remaining), facts))))


def _headline(plan: SavedPlan, remaining: SubmissionPlan) -> str:
    """Return the number of rows to send, or why no row is sent."""
    leads, rows = len(remaining.positions), plural(len(remaining.frame), "row")
    if why := refusal(remaining):
        return f"0 of {rows} of {plan.file} will be sent: {why}."
    where = "; the first leads are above" if leads else ""
    return f"{leads:,} of {rows} of {plan.file} will be sent{where}."


_MCP: Final = Command(
    "mcp",
    "serve tools that read and plan to an agent",
    _run_mcp,
    others=[
        option("--folder", type=Path, default=Path(), help="the agent's folder (default: current)"),
        option("--rows", type=int, default=5, help="rows that a reply shows (default: 5)"),
        add_service,
    ],
    details="The agent's program uses the Model Context Protocol. No tool sends leads: a person "
    "does, with `outreach-frames approve`.",
)
_APPROVE: Final = Command(
    "approve",
    "show a plan that an agent made, and send it",
    _run_approve,
    options={
        "--profile NAME": "a stored profile",
        "--results FOLDER": "a folder for a CSV file per outcome",
        "--retry-unknown": "send only the rows that earlier approvals left as unknown",
    },
    others=[
        option(
            "--send-again",
            nargs="+",
            metavar="STATUS",
            help="skips of the service, such as recently_contacted: people whose recorded outcome "
            "is one of these are sent again",
        ),
        option("plan", type=Path, metavar="PLAN", help="the plan's .json file"),
        add_rate,
    ],
    details="The command asks for the sequence's name before it sends. Repeat it after an "
    "interruption. The exit code is 4 if some rows were not added, or with --retry-unknown while "
    "rows remain unknown.",
    once=True,
)
AGENT_COMMANDS: Final = (_MCP, _APPROVE)
