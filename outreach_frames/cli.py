"""The command line: one command per job, `outreach-frames --help` lists them."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from inspect import getdoc, signature
from pathlib import Path
from typing import Final

import pandas as pd

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.commands.add_leads import ADD_LEADS, EXIT_NOT_ALL_ADDED
from outreach_frames.commands.history import COMPARE, SNAPSHOT
from outreach_frames.commands.lab import LAB
from outreach_frames.commands.options import (
    REFRESH,
    SANDBOX_OPTION,
    SPLIT_BY,
    TABLE_FILE,
    Command,
    CommandParser,
    add_filters,
    call,
    option,
    writable,
)
from outreach_frames.commands.sandbox import RUN_SANDBOX
from outreach_frames.commands.terminal import in_shell, printing_everything, show
from outreach_frames.common.text import plural, printable
from outreach_frames.demo import run_demo
from outreach_frames.errors import ConfigurationError, InvalidInputError, OutreachError
from outreach_frames.files.read import read_as_text

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_CODES = {
    EXIT_OK: "all well",
    EXIT_FAILURE: "a failure",
    EXIT_USAGE: "wrong usage",
    EXIT_NOT_ALL_ADDED: "some rows were not added",
}

_SEARCH_COLUMNS = ["name", "title", "location", "company_name", "company_size"]
# The accessor's methods that write a table, by the ending of the file.
_WRITERS = {".csv": "to_csv", ".parquet": "to_parquet", ".xlsx": "to_excel"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of `EXIT_CODES`."""
    options = make_parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int | None] = options.run
    try:
        with contextlib.ExitStack() as stack:
            for stream in (sys.stdout, sys.stderr):
                stack.enter_context(printing_everything(stream))
            stack.callback(setattr, warnings, "formatwarning", warnings.formatwarning)
            warnings.formatwarning = _as_line
            return run(options) or EXIT_OK
    except (InvalidInputError, ConfigurationError) as error:
        _complain(error, str(error))
        return EXIT_USAGE
    except (OutreachError, KeyboardInterrupt) as error:
        _complain(error, "interrupted" if isinstance(error, KeyboardInterrupt) else str(error))
        _keep_partial(error, options)
        return EXIT_FAILURE


def _complain(error: BaseException, words: str) -> None:
    """Say what went wrong, and what was noted about it on the way."""
    for line in (words, *getattr(error, "__notes__", ())):
        print(printable(f"outreach-frames: {in_shell(line)}", keep="\n"), file=sys.stderr)


def _keep_partial(error: BaseException, options: argparse.Namespace) -> None:
    """Write what was read before a failure beside the files that were named."""
    partial = getattr(error, "partial", None)
    if partial is None:
        return
    tables = {"out": partial}
    if isinstance(partial, AccountPeople):
        tables = {"out": partial.people, "accounts": partial.accounts}
    for name, table in tables.items():
        file: Path | None = getattr(options, name, None)
        if file is None or table.empty:
            continue
        place = file.with_name(f"{file.stem}.partial{file.suffix}")
        try:
            words = _written(table, place)
        except OutreachError as fault:
            words = f"What was read before could not be written: {fault}"
        print(printable(f"outreach-frames: {words}"), file=sys.stderr)


def _as_line(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - Python's own signature
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> str:
    """Show a warning as one line: in a shell there is no line of code to point at."""
    return f"outreach-frames: {in_shell(str(message))}\n"


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    codes = ", ".join(f"{code} {means}" for code, means in EXIT_CODES.items())
    parser = argparse.ArgumentParser(
        prog="outreach-frames",
        description="Prospects, sequences and mailboxes of a sales-outreach service as tables.",
        epilog=f"Start with: outreach-frames demo. Exit codes: {codes}.",
    )
    parser.add_argument("--version", action="version", version=version("outreach-frames"))
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True, parser_class=CommandParser
    )
    for command in COMMANDS:
        command.define(commands)
    return parser


def _run_search(options: argparse.Namespace) -> None:
    if options.count:
        print(f"{call(of.count_people, options):,}")
        return
    limit = None if options.all else options.limit
    frame = call(of.search_people, options, limit=limit)
    _show(frame, [*_SEARCH_COLUMNS, *filter(None, [options.split_by])], options.out)


def _run_find_people(options: argparse.Namespace) -> None:
    accounts = read_as_text(options.file)
    most = None if options.all else options.per_company
    found = call(accounts.outreach.find_people, options, per_company=most)
    show(f"{found}\n")
    _show(found.people, ["account_row", "account_rank", *_SEARCH_COLUMNS], options.out)
    if options.accounts is not None:
        _show(found.accounts, [], options.accounts)


def _run_export(options: argparse.Namespace) -> None:
    print(f"The people are in {call(of.export_people, options, path=options.file)}")


def _run_forget(options: argparse.Namespace) -> None:
    found = call(of.forget, options)
    show("Nothing on this machine holds them." if found.empty else found.to_string(index=False))


def _add_company_columns(command: argparse.ArgumentParser) -> None:
    companies = command.add_argument_group("columns of the file that name the companies")
    companies.add_argument("--domain", metavar="COLUMN", help="web addresses, domains or e-mails")
    companies.add_argument("--company-id", metavar="COLUMN", help="the service's ids of companies")
    companies.add_argument("--company-profnet-url", metavar="COLUMN", help="profile URLs")
    companies.add_argument("--name", metavar="COLUMN", help="names; one request for each")


def _path(text: str) -> Path | str:
    """Return a path as it was typed: a Path forgets the separator that ends the name of a folder.

    >>> _path("people/")
    'people/'
    """
    return text if text.endswith(("/", os.sep)) else Path(text)


def _show(frame: pd.DataFrame, columns: list[str], out: Path | None) -> None:
    if out is None:
        print(printable(frame[columns].to_string(max_rows=40, max_colwidth=40), keep="\n"))
        print(f"\n{len(frame):,} rows, {frame.shape[1]} columns; --out FILE writes them all.")
        return
    print(_written(frame, out))


def _written(frame: pd.DataFrame, file: Path) -> str:
    """Write a table, and return what to say of it."""
    write = getattr(frame.outreach, _WRITERS[file.suffix.lower()])
    return f"{plural(len(frame), 'row')} written to {write(file)}"


_TABLE_PATH: Final = writable(tuple(_WRITERS), "tables")
_OUT: Final = option(
    "--out",
    type=_TABLE_PATH,
    metavar="FILE",
    help="write all columns to a .csv, .parquet or .xlsx file; after a failure, what was read "
    "before goes to FILE with .partial in its name",
)
_LISTING: Final = (_OUT, SANDBOX_OPTION, REFRESH)


def _listing(endpoint: spec.Endpoint) -> Command:
    """Return the command of a list, with an option for each filter of its function."""
    listed = endpoint.listed
    function = getattr(of, listed.name)
    known = spec.columns(listed.members)
    # In the terminal without dates and what belongs to other objects.
    shown = [
        field.name
        for field in listed.members
        if not field.format and not field.members and not field.name.endswith("_id")
    ]
    options = [
        option(
            f"--{field.name.replace('_', '-')}",
            metavar=field.name.rpartition("_")[2].upper(),
            help=", ".join(field.values) or field.note or known[field.name].note,
        )
        for field in endpoint.query
        if field.name in signature(function).parameters
    ]
    return Command(
        listed.name,
        endpoint.note,
        str(getdoc(function)).partition("\n")[0],
        (*options, *_LISTING),
        lambda options: _show(call(function, options), shown, options.out),
    )


COMMANDS: Final = (
    Command(
        "demo",
        "see the whole toolkit at work, with no account",
        "Start the embedded service, search people, show the tables, and leave prospects.csv and "
        "headcount.png in a folder.",
        (
            option(
                "--folder",
                type=Path,
                default=Path(),
                help="where the two files go, made where it is missing (here)",
            ),
        ),
        lambda options: run_demo(options.folder),
    ),
    RUN_SANDBOX,
    LAB,
    *map(_listing, spec.LISTS),
    Command(
        "search",
        "search people and export the table",
        "Search people. Several values of one filter mean any of them, different filters together "
        "mean all. Quote values that have blanks.",
        (
            option("--limit", type=int, default=1000, help="people at most (1000)"),
            option("--all", action="store_true", help="read all people who match"),
            option("--count", action="store_true", help="only say how many match"),
            SPLIT_BY,
            *_LISTING,
            add_filters,
        ),
        _run_search,
        usage="%(prog)s [FILTERS] [--limit LIMIT | --all | --count] [--out FILE] [--sandbox]",
    ),
    Command(
        "find-people",
        "find people at the companies of a file",
        "Find the first few people at each company of a file, and report what became of every "
        "company. Filters say who is wanted there.",
        (
            TABLE_FILE,
            _add_company_columns,
            option("--per-company", type=int, default=10, metavar="N", help="at most (10)"),
            option("--all", action="store_true", help="read everybody who matches"),
            SPLIT_BY,
            option(
                "--accounts",
                type=_TABLE_PATH,
                metavar="FILE",
                help="write the companies with what became of them to a .csv, .parquet or .xlsx "
                "file",
            ),
            *_LISTING,
            add_filters,
        ),
        _run_find_people,
        usage="%(prog)s FILE --domain COLUMN [--per-company N] [FILTERS] [--out FILE] [--sandbox]",
    ),
    Command(
        "export",
        "write people to a file, any number of them",
        "Write all people that match to a file. The file appears when it is complete. If it is "
        "interrupted, the same command resumes where it stopped.",
        (
            option(
                "file",
                type=_path,
                help="ends in .csv, .parquet or .ndjson (one person in JSON per line), or is a "
                "folder, with no ending, for many Parquet files",
            ),
            option("--limit", type=int, help="people at most (all)"),
            option(
                "--no-resume",
                dest="resume",
                action="store_false",
                help="start over, and delete what an interrupted command left",
            ),
            option("--page-size", type=int, metavar="N", help="people per request (100)"),
            SPLIT_BY,
            SANDBOX_OPTION,
            REFRESH,
            add_filters,
        ),
        _run_export,
    ),
    ADD_LEADS,
    SNAPSHOT,
    COMPARE,
    Command(
        "forget",
        "remove people from the cache, and list the files that hold them",
        "Remove people from the responses that are stored on this machine, and list the journals, "
        "exports and tables under a folder that hold them; those are left alone.",
        (
            option("--email", nargs="+", metavar="EMAIL", help="the people, by address"),
            option("--profnet-url", nargs="+", metavar="URL", help="the people, by profile"),
            option("--folder", type=Path, help="where your files are"),
            option("--dry-run", action="store_true", help="only say what would be removed"),
        ),
        _run_forget,
    ),
)
