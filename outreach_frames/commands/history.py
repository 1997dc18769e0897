"""Snapshots of a search and what changed between them, for a shell and for cron."""

from __future__ import annotations

import argparse
from pathlib import Path

import outreach_frames as of
from outreach_frames.commands.options import (
    SANDBOX_OPTION,
    SPLIT_BY,
    Command,
    add_filters,
    call,
    option,
    writable,
)
from outreach_frames.commands.terminal import show
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError
from outreach_frames.history.snapshots import count_people


def _run_snapshot(options: argparse.Namespace) -> None:
    path = call(of.snapshot_people, options, progress=False if options.quiet else None)
    if not options.quiet:
        show(f"{plural(count_people(path), 'person', 'people')} written to {path}")


def _run_compare(options: argparse.Namespace) -> None:
    if options.quiet and options.out is None:
        raise InvalidInputError("--quiet without --out would leave nothing. Name a file too.")
    comparison = call(of.compare_people, options, progress=False if options.quiet else None)
    if options.out is None:
        show(comparison)
        return
    write = comparison.to_excel if options.out.suffix else comparison.to_csv
    path = write(options.out)
    if not options.quiet:
        show(f"{comparison.headline}, written to {path}")


_QUIET = option(
    "--quiet", action="store_true", help="say nothing but warnings and errors, as for cron"
)

SNAPSHOT = Command(
    "snapshot",
    "keep everybody whom a search finds today",
    "Write all people that match to FOLDER/snapshot=<date>, as Parquet. When the command is "
    "interrupted, the same command on the same day goes on where it stopped.",
    (
        option("folder", type=Path, help="the folder of this one search"),
        option("--date", metavar="DATE", help="YYYY-MM-DD (today on this machine)"),
        _QUIET,
        SPLIT_BY,
        SANDBOX_OPTION,
        add_filters,
    ),
    _run_snapshot,
    usage="%(prog)s FOLDER [FILTERS] [--date DATE] [--quiet] [--sandbox]",
)
COMPARE = Command(
    "compare",
    "say what changed between two snapshots",
    "Compare the last two snapshots of a folder, or two files or folders of people: who appeared "
    "and disappeared, which values changed, who changed employers, and how headcounts grew.",
    (
        option("before", type=Path, help="a folder of snapshots, or the people before"),
        option("after", type=Path, nargs="?", help="the people after"),
        option(
            "--out",
            type=writable((".xlsx", ""), "a workbook, or CSV files to a folder"),
            metavar="FILE",
            help="an .xlsx file with a sheet for each table, or a folder for .csv files",
        ),
        _QUIET,
    ),
    _run_compare,
)
