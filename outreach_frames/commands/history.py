"""Snapshots of a search and what changed between them, for a shell and for cron."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import outreach_frames as of
from outreach_frames.commands.search_options import (
    CONNECTION,
    add_filters,
    add_sandbox,
    add_split_by,
    connected,
    filters_of,
)
from outreach_frames.common.atomic_files import check_suffix
from outreach_frames.common.shell_words import in_shell
from outreach_frames.common.text import plural, printable
from outreach_frames.errors import InvalidInputError
from outreach_frames.history.snapshots import count_people

_WORKBOOK = ".xlsx"


def define(commands: Any) -> None:
    """Define both commands and their options."""
    snapshot = commands.add_parser(
        "snapshot",
        help="keep everybody whom a search finds today",
        description="Write all people that match to FOLDER/snapshot=<date>, as Parquet. When the "
        "command is interrupted, the same command on the same day goes on where it stopped.",
        usage="%(prog)s FOLDER [FILTERS] [--date DATE] [--quiet] [--sandbox]",
        allow_abbrev=False,
        epilog=CONNECTION,
    )
    snapshot.add_argument("folder", type=Path, help="the folder of this one search")
    snapshot.add_argument("--date", metavar="DATE", help="YYYY-MM-DD (today on this machine)")
    _add_quiet(snapshot)
    add_split_by(snapshot)
    add_sandbox(snapshot)
    add_filters(snapshot)
    snapshot.set_defaults(run=_run_snapshot)
    compare = commands.add_parser(
        "compare",
        help="say what changed between two snapshots",
        description="Compare the last two snapshots of a folder, or two files or folders of "
        "people: who appeared and disappeared, which values changed, who changed employers, and "
        "how headcounts grew.",
    )
    compare.add_argument("before", type=Path, help="a folder of snapshots, or the people before")
    compare.add_argument("after", type=Path, nargs="?", help="the people after")
    compare.add_argument(
        "--out",
        type=_out,
        metavar="FILE",
        help="an .xlsx file with a sheet for each table, or a folder for .csv files",
    )
    _add_quiet(compare)
    compare.set_defaults(run=_run_compare)


def _add_quiet(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--quiet", action="store_true", help="say nothing but warnings and errors, as for cron"
    )


def _out(text: str) -> Path:
    try:
        check_suffix(text, (_WORKBOOK, ""), "a workbook, or CSV files to a folder")
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def _run_snapshot(options: argparse.Namespace) -> None:
    saved, fields = filters_of(options)
    with connected(options):
        path = of.snapshot_people(
            options.folder,
            saved,
            date=options.date,
            split_by=options.split_by,
            progress=False if options.quiet else None,
            **fields,
        )
    if not options.quiet:
        print(printable(f"{plural(count_people(path), 'person', 'people')} written to {path}"))


def _run_compare(options: argparse.Namespace) -> None:
    if options.quiet and options.out is None:
        raise InvalidInputError("--quiet without --out would leave nothing. Name a file too.")
    progress = False if options.quiet else None
    comparison = of.compare_people(options.before, options.after, progress=progress)
    if options.out is None:
        print(printable(in_shell(str(comparison)), keep="\n"))
        return
    write = comparison.to_excel if options.out.suffix else comparison.to_csv
    path = write(options.out)
    if not options.quiet:
        print(printable(f"{comparison.headline}, written to {path}"))
