"""The command `add-leads`: add a file's rows to a sequence and report each row's outcome."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.commands.options import (
    EXIT_NOT_ALL_ADDED,
    EXIT_OK,
    SANDBOX_OPTION,
    TABLE_FILE,
    Command,
    connected,
    option,
    options_of,
)
from outreach_frames.commands.terminal import (
    fit_lines,
    in_shell_terms,
    print_if_open,
    signals_as_ctrl_c,
)
from outreach_frames.common.atomic_files import expanded
from outreach_frames.common.signals import HeldSignals
from outreach_frames.common.text import printable
from outreach_frames.errors import InvalidInputError, OutreachError
from outreach_frames.files.read import read_as_text
from outreach_frames.leads.plan import add_to_sequence
from outreach_frames.leads.statuses import ADDED, DRY_RUN_KINDS, INVALID, PRESENT, WOULD_SEND


def _run(options: argparse.Namespace) -> int:
    data = _data_mapping(options.data)
    if options.results is not None:
        _check_results(options.results, options.file, options.journal)
    frame = read_as_text(options.file, sheet_name=options.sheet_name, encoding=options.encoding)
    columns = {"email": options.email, "profnet_url": options.profnet_url}
    with connected(options), signals_as_ctrl_c():
        last = of.last_report()
        try:
            report = frame.outreach.add_to_sequence(
                options.sequence,
                **{name: column for name, column in columns.items() if column is not None},
                data=data,
                overrides=dict.fromkeys(options.overrides, True) if options.overrides else None,
                **{name: getattr(options, name) for name in _PASSED},
            )
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
            print_if_open(fit_lines(printable(in_shell_terms(str(report)), keep="\n")))
    if unwritten is not None:
        raise OutreachError(f"The results could not be written: {unwritten}") from unwritten
    if options.results is not None:
        print_if_open(f"Each row with its outcome: {options.results}")
    good = [ADDED, PRESENT, *([WOULD_SEND, INVALID] if options.dry_run else [])]
    return EXIT_OK if report.rows["status"].isin(good).all() else EXIT_NOT_ALL_ADDED


def _check_results(folder: Path, *others: Path | None) -> None:
    """Check that the results can be written and would not replace the input file or journal."""
    try:
        folder = expanded(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        results = {(folder / f"{kind}.csv").resolve() for kind in DRY_RUN_KINDS}
        replaced = [
            path for path in others if path is not None and expanded(path).resolve() in results
        ]
    except (OSError, InvalidInputError) as error:
        raise InvalidInputError(
            f"--results {folder}: files cannot be written there ({error}). Choose another folder. "
            "Nothing was sent."
        ) from error
    if replaced:
        raise InvalidInputError(
            f"--results {folder} would replace {replaced[0]}, which this command uses. Choose "
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


_PASSED: Final = (
    *("mailbox", "leads_distribution", "mailboxes", "chunk_size", "clean", "journal", "dry_run"),
)

ADD_LEADS: Final = Command(
    "add-leads",
    "add the rows of a file to a sequence",
    "Check the rows of a CSV, Excel or Parquet file, add the valid ones to a sequence, and report "
    "each row's outcome. The exit code is 4 if some rows were not added, or in a dry run if some "
    "valid rows would not be sent.",
    (
        *TABLE_FILE,
        option("--sequence", required=True, metavar="ID", help="the sequence's id"),
        option("--email", metavar="COLUMN", help="the column with email addresses (email)"),
        option(
            "--profnet-url", metavar="COLUMN", help="the column with profile URLs (profnet_url)"
        ),
        option(
            "--data",
            nargs="+",
            action="extend",
            default=[],
            metavar="FIELD=COLUMN",
            help='fields for the sequence\'s texts, such as first_name="First Name"',
        ),
        option(
            "--overrides",
            nargs="+",
            action="extend",
            choices=[field.name for field in spec.OVERRIDES],
            metavar="NAME",
            help=", ".join(field.name for field in spec.OVERRIDES),
        ),
        *options_of(
            add_to_sequence,
            *_PASSED,
            leads_distribution={"help": ", ".join(spec.LEADS_DISTRIBUTIONS)},
            mailboxes={"metavar": "MAILBOX"},
        ),
        option(
            "--results", type=Path, metavar="FOLDER", help="a folder for a CSV file per outcome"
        ),
        SANDBOX_OPTION,
    ),
    _run,
)
