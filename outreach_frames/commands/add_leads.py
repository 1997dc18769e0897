"""The command `add-leads`: add a file's rows to a sequence and report each row's outcome."""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.commands.options import (
    EXIT_NOT_ALL_ADDED,
    EXIT_OK,
    Command,
    arguments_of,
    connected,
    read_table,
)
from outreach_frames.commands.terminal import print_card, print_note, signals_as_ctrl_c
from outreach_frames.common.atomic_files import expanded
from outreach_frames.common.signals import HeldSignals
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import retry_unknown
from outreach_frames.leads.statuses import (
    ADDED,
    DRY_RUN_KINDS,
    INVALID,
    PRESENT,
    UNKNOWN,
    WOULD_SEND,
)


def _run(options: argparse.Namespace) -> int:
    data = _data_mapping(options.data or [])
    overrides = dict.fromkeys(options.overrides, True) if options.overrides else None
    if options.results is not None:
        _check_results(options.results, options.path, options.journal)
    leads = read_table(options).outreach
    with connected(options), signals_as_ctrl_c():
        last = of.last_report()
        try:
            given = arguments_of(leads.add_to_sequence, options)
            given |= {"data": data, "overrides": overrides}
            add = partial(_retry, leads) if options.retry_unknown else leads.add_to_sequence
            report = add(**given)
        except KeyboardInterrupt:
            report = of.last_report()
            if report is None or report is last:
                raise
        # Write the files first: they record what was sent even if the terminal is closed.
        unwritten = None
        with HeldSignals():
            if options.results is not None:
                try:
                    report.to_csv(options.results)
                except OutreachError as error:
                    unwritten = error
            print_card(report._card())
    if unwritten is not None:
        raise OutreachError(f"The results could not be written: {unwritten}") from unwritten
    if options.results is not None:
        print_note(f"Each row with its outcome: {options.results}")
    else:
        print_note("--results FOLDER writes each row with its outcome to a file.")
    if options.retry_unknown:
        return EXIT_NOT_ALL_ADDED if report.rows["status"].eq(UNKNOWN).any() else EXIT_OK
    good = [ADDED, PRESENT, *([WOULD_SEND, INVALID] if options.dry_run else [])]
    return EXIT_OK if report.rows["status"].isin(good).all() else EXIT_NOT_ALL_ADDED


def _retry(leads: Any, **given: Any) -> SubmissionReport:
    """Send only the rows whose outcome the journal has as unknown."""
    unused = [name for name in ("dry_run", "send_again") if given.pop(name, None)]
    journal, progress = given.pop("journal", None), given.pop("progress", None)
    if unused or journal is None:
        raise InvalidInputError(
            "--retry-unknown needs --journal, and takes neither --dry-run nor --send-again. "
            "Nothing was sent."
        )
    return retry_unknown(leads.plan(**given), journal, progress=progress)


def _check_results(folder: Path, *others: str | None) -> None:
    """Check that the results can be written and would not replace the input file or journal."""
    try:
        folder = expanded(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, InvalidInputError) as error:
        raise InvalidInputError(
            f"--results {folder}: files cannot be written there ({error}). Choose another folder. "
            "Nothing was sent."
        ) from error
    results = {(folder / f"{kind}.csv").resolve() for kind in DRY_RUN_KINDS}
    for path in filter(None, others):
        if expanded(path).resolve() in results:
            raise InvalidInputError(
                f"--results {folder} would replace {path}, which this command uses. Choose "
                "another folder. Nothing was sent."
            )


def _data_mapping(words: list[str]) -> dict[str, str] | None:
    """Parse FIELD=COLUMN arguments; a name alone is both field and column."""
    mapping: dict[str, str] = {}
    for field, _, column in (word.partition("=") for word in words):
        if field in mapping:
            raise InvalidInputError(f"--data has the field {field!r} twice. Pass it once.")
        mapping[field] = column or field
    return mapping or None


ADD_LEADS: Final = Command(
    "add-leads",
    "add the rows of a file to a sequence",
    _run,
    [".leads.plan:add_to_sequence", ".files.read:read_prospects"],
    options={
        "path": "a .csv, .xlsx, .xlsm or .parquet file, or a folder of .parquet files",
        "--sequence ID": "the sequence's id",
        "--email COLUMN": "the column with the leads' email addresses",
        "--no-email": "send no email addresses",
        "--profnet-url COLUMN": "the column with the leads' profile URLs",
        "--no-profnet-url": "send no profile URLs",
        "--data FIELD=COLUMN": 'fields for the sequence\'s texts, such as first_name="First Name"',
        "--require FIELD": "data fields without which a row is invalid",
        "--overrides NAME": ", ".join(spec.OVERRIDE_NAMES),
        "--mailbox COLUMN": "the column with each row's mailbox, or its user's name or address",
        "--mailboxes EMAIL": "the mailboxes that share the leads or, with --mailbox, the rows "
        "without one; by default those in the sequence's settings",
        "--chunk-size N": f"leads per request, at most {spec.MAX_LEADS_PER_REQUEST}",
        "--clean": "repair cells with one email or profile URL, such as `Rui <rui@x.example>`",
        "--journal FILE": "a file that records what was sent",
        "--dry-run": "check and report without sending",
        "--send-again STATUS": "skips of the service, such as recently_contacted: people whose "
        "recorded outcome is one of these are sent again",
        "--retry-unknown": "send only the rows that the journal records as unknown",
        "--results FOLDER": "a folder for a CSV file per outcome",
    },
    details="Only valid rows are sent; each row's outcome is reported. The exit code is 4 if some "
    "rows were not added, in a dry run if some valid rows would not be sent, or with "
    "--retry-unknown while rows remain unknown.",
    once=True,
)
