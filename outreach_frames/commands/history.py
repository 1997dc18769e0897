"""The commands `snapshot` and `compare`: save a search's people and compare them over time."""

from __future__ import annotations

import argparse
from pathlib import Path

import outreach_frames as of
from outreach_frames.commands.options import Command, call, option, output_path
from outreach_frames.commands.terminal import print_card, print_text
from outreach_frames.common.text import plural
from outreach_frames.errors import InvalidInputError


def _run_snapshot(options: argparse.Namespace) -> None:
    from outreach_frames.history.snapshots import count_stored_people  # noqa: PLC0415 - slow to import

    path = call(of.snapshot_people, options)
    if not options.quiet:
        print_text(f"{plural(count_stored_people(path), 'person', 'people')} written to {path}")


def _run_compare(options: argparse.Namespace) -> None:
    if options.quiet and options.out is None:
        raise InvalidInputError("--quiet without --out has no output. Pass --out FILE too.")
    people = {
        name: call(of.read_prospects, options, path=path)
        for name in ("before", "after")
        if (options.encoding or options.sheet_name or options.sep)
        and (path := getattr(options, name)) is not None
    }
    comparison = call(of.compare_people, options, **people)
    if options.out is None:
        print_card(comparison._card(), options)
        print_text("--out FILE writes the tables to a file.")
        return
    write = comparison.to_excel if options.out.suffix else comparison.to_csv
    path = write(options.out)
    if not options.quiet:
        print_text(f"{comparison.headline}, written to {path}")


_QUIET = option(
    "--quiet", action="store_true", help="print only warnings and errors, for example in cron"
)

SNAPSHOT = Command(
    "snapshot",
    "save the people that a search finds today",
    _run_snapshot,
    [":snapshot_people"],
    arguments=["folder"],
    options=[_QUIET],
)
COMPARE = Command(
    "compare",
    "show what changed between two snapshots",
    _run_compare,
    [":compare_people", ".files.read:read_prospects"],
    without=["before", "after"],
    options=[
        option(
            "before",
            type=Path,
            help="a folder whose last two snapshots are compared, or a file or folder of people",
        ),
        option("after", type=Path, nargs="?", help="a later file or folder of people"),
        option(
            "--out",
            type=output_path((".xlsx", ""), "a workbook, or CSV files to a folder"),
            metavar="FILE",
            help="an .xlsx file with a sheet for each table, or a folder for .csv files",
        ),
        _QUIET,
    ],
)
