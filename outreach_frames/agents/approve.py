"""The command `approve`: show an agent's plan to a person, and send it if the person agrees."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import outreach_frames as of
from outreach_frames.agents.folder import Folder
from outreach_frames.agents.plan_file import Plan, read_plan
from outreach_frames.client.client import Client
from outreach_frames.commands.options import EXIT_NOT_ALL_ADDED, EXIT_OK, Command, option
from outreach_frames.commands.terminal import (
    fit_lines,
    in_shell_terms,
    print_if_open,
    print_text,
    signals_as_ctrl_c,
)
from outreach_frames.common.atomic_files import expanded, unwritable
from outreach_frames.common.card import Card, Fact, as_text
from outreach_frames.common.text import plural, printable, quoted, shorten
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.cards import plan_facts
from outreach_frames.leads.plan import SubmissionPlan
from outreach_frames.leads.statuses import ADDED, PRESENT

_MAX_AGE: Final = timedelta(hours=24)
# Clocks of two machines differ.
_MAX_CLOCK_DIFFERENCE: Final = timedelta(minutes=5)
_MAX_LEAD_LENGTH: Final = 2000


def _run(options: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInputError(
            "approve asks a person: run it in a terminal, without redirecting its input or "
            "output. Nothing was sent."
        )
    place = expanded(options.plan)
    folder = Folder(place.parent)
    plan, snapshot = read_plan(folder, place.name)
    _check_age(plan)
    with of.connect(profile=options.profile) as client, signals_as_ctrl_c():
        _check_account(plan, client)
        prepared = plan.prepare(snapshot, client)
        name, status = _sequence(prepared, client)
        journal = _journal(plan)
        earlier = prepared.submit(journal=journal, dry_run=True, progress=False)
        _show_leads(prepared, options.leads)
        if journal.exists():
            print_text(fit_lines(f"Sent before. {in_shell_terms(str(earlier))}\n"))
        print_text(fit_lines(as_text(_card(plan, prepared, f"{name}, {status}"))))
        if not _agrees(name):
            raise OutreachError("Another name was typed. Nothing was sent.")
        report = prepared.submit(journal=journal)
        print_if_open(fit_lines(printable(in_shell_terms(str(report)), keep="\n")))
    return EXIT_OK if report.rows["status"].isin([ADDED, PRESENT]).all() else EXIT_NOT_ALL_ADDED


def _check_age(plan: Plan) -> None:
    age = datetime.now(UTC) - plan.created_at
    if not -_MAX_CLOCK_DIFFERENCE <= age <= _MAX_AGE:
        raise InvalidInputError(
            f"The plan is of {plan.created_at}; a plan can be approved for 24 hours. Plan again. "
            "Nothing was sent."
        )


def _check_account(plan: Plan, client: Client) -> None:
    if (plan.service, plan.account) != (client.base_url, client.account):
        raise InvalidInputError(
            f"The plan is for another account, or for another token, at {quoted(plan.service)}; "
            f"this is an account at {client.base_url}. Pass --profile NAME, or plan again. The "
            "sandbox of mcp --sandbox cannot be approved: run outreach-frames sandbox. Nothing "
            "was sent."
        )


def _sequence(prepared: SubmissionPlan, client: Client) -> tuple[str, str]:
    """Return the sequence's printable name, or its id without a name, and its status."""
    every = of.sequences(refresh=True, progress=False, client=client)
    found = every[every["id"] == prepared.sequence_id]
    if found.empty:
        raise InvalidInputError(
            f"The account has no sequence {quoted(prepared.sequence_id)}. Nothing was sent."
        )
    name, status = (
        " ".join(printable(str(text)).split()) if isinstance(text, str) else ""
        for text in found[["name", "status"]].iloc[0]
    )
    return name or prepared.sequence_id, status or "status unknown"


def _journal(plan: Plan) -> Path:
    journal = plan.journal()
    try:
        journal.parent.mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(journal, error) from error
    return journal


def _show_leads(prepared: SubmissionPlan, number: int) -> None:
    """Print the first leads as they are sent."""
    for lead in prepared.leads(prepared.positions[:number]):
        text = shorten(json.dumps(lead, ensure_ascii=False), _MAX_LEAD_LENGTH)
        # The marks show that a line belongs to a lead, whatever the lead's text pretends.
        print_text(textwrap.fill(text, 78, initial_indent="* ", subsequent_indent="| "))


def _card(plan: Plan, prepared: SubmissionPlan, sequence: str) -> Card:
    """Build the card of a plan with the facts that the person decides on."""
    data = plan.arguments.get("data")
    columns = data if isinstance(data, dict) else {}
    fields = [
        f"{field} from {quoted(columns.get(field, field))}" for field in prepared.checked.data
    ]
    return Card(
        headline=(
            f"The plan of {plan.created_at} sends {len(prepared.positions):,} of "
            f"{plural(len(prepared.frame), 'row')} of {plan.file}; the first leads are above."
        ),
        facts=[
            Fact("Service", str(prepared.client and prepared.client.base_url)),
            Fact("Sequence", f"{sequence} ({prepared.sequence_id})"),
            Fact("Data", ", ".join(fields) or "none"),
            *plan_facts(prepared)[1:],
        ],
    )


def _agrees(name: str) -> bool:
    """Ask for the sequence's name, and return whether it was typed."""
    try:
        return _comparable(input("To send, type the sequence's name: ")) == _comparable(name)
    except EOFError:
        return False


def _comparable(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


APPROVE: Final = Command(
    "approve",
    "show a plan that an agent made, and send it",
    "Show the leads of a plan that an agent made with `outreach-frames mcp`, ask for the "
    "sequence's name, and send the plan. Repeat the command after an interruption: nobody is "
    "sent twice. The exit code is 4 if some rows were not added.",
    (
        option("plan", type=Path, metavar="PLAN", help="the plan's .json file"),
        option("--profile", metavar="NAME", help="a stored profile"),
        option(
            "--leads", type=int, default=3, metavar="N", help="leads to show (default: %(default)s)"
        ),
    ),
    _run,
)
