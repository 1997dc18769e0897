"""The command line: one command per job, `outreach-frames --help` lists them."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.commands import add_leads, history, lab, sandbox
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
from outreach_frames.common.terminal import (
    CommandParser,
    printing_everything,
)
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
    add_leads.EXIT_NOT_ALL_ADDED: "some rows were not added",
}

_SEARCH_COLUMNS = ["name", "title", "location", "company_name", "company_size"]
_SEQUENCE_COLUMNS = ["id", "name", "status", "created_by_user_email"]
_MAILBOX_COLUMNS = ["id", "email", "email_provider", "status", "daily_email_limit"]
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
    for option, table in tables.items():
        file: Path | None = getattr(options, option, None)
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
    _add_demo(commands)
    sandbox.define(commands)
    lab.define(commands)
    _add_sequences(commands)
    _add_mailboxes(commands)
    _add_search(commands)
    _add_find_people(commands)
    _add_export(commands)
    add_leads.define(commands, epilog=CONNECTION)
    history.define(commands)
    _add_forget(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="see the whole toolkit at work, with no account",
        description="Start the embedded service, search people, show the tables, and leave "
        "prospects.csv and headcount.png in a folder.",
    )
    demo.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        help="where the two files go, made where it is missing (here)",
    )
    demo.set_defaults(run=lambda options: run_demo(options.folder))


def _add_sequences(commands: Any) -> None:
    sequences = commands.add_parser(
        "sequences",
        help="list the sequences",
        description="List the account's sequences.",
        epilog=CONNECTION,
    )
    sequences.add_argument("--name", help="part of the name, in any case")
    sequences.add_argument("--status", help=", ".join(spec.SEQUENCE_STATUSES))
    sequences.add_argument("--created-by-user-id", metavar="ID", help="those of this user")
    sequences.add_argument("--created-by-user-email", metavar="EMAIL", help="the same, by address")
    _add_common(sequences)
    sequences.set_defaults(run=_run_sequences)


def _add_mailboxes(commands: Any) -> None:
    mailboxes = commands.add_parser(
        "mailboxes",
        help="list the mailboxes and their daily limits",
        description="List the mailboxes that are connected to the account.",
        epilog=CONNECTION,
    )
    mailboxes.add_argument("--status", help=", ".join(spec.MAILBOX_STATUSES))
    mailboxes.add_argument("--email-provider", help=", ".join(spec.EMAIL_PROVIDERS))
    mailboxes.add_argument("--user-email", metavar="EMAIL", help="mailboxes of this user")
    _add_common(mailboxes)
    mailboxes.set_defaults(run=_run_mailboxes)


def _add_search(commands: Any) -> None:
    search = commands.add_parser(
        "search",
        help="search people and export the table",
        description="Search people. Several values of one filter mean any of them, different "
        "filters together mean all. Quote values that have blanks.",
        usage="%(prog)s [FILTERS] [--limit LIMIT | --all | --count] [--out FILE] [--sandbox]",
        allow_abbrev=False,
        epilog=CONNECTION,
    )
    search.add_argument("--limit", type=int, default=1000, help="people at most (1000)")
    search.add_argument("--all", action="store_true", help="read all people who match")
    search.add_argument("--count", action="store_true", help="only say how many match")
    add_split_by(search)
    _add_common(search)
    add_filters(search)
    search.set_defaults(run=_run_search)


def _add_find_people(commands: Any) -> None:
    find = commands.add_parser(
        "find-people",
        help="find people at the companies of a file",
        description="Find the first few people at each company of a file, and report what became "
        "of every company. Filters say who is wanted there.",
        usage="%(prog)s FILE --domain COLUMN [--per-company N] [FILTERS] [--out FILE] [--sandbox]",
        allow_abbrev=False,
        epilog=CONNECTION,
    )
    find.add_argument("file", type=Path, help="a .csv file in UTF-8 with a header row, or .parquet")
    companies = find.add_argument_group("columns of the file that name the companies")
    companies.add_argument("--domain", metavar="COLUMN", help="web addresses, domains or e-mails")
    companies.add_argument("--company-id", metavar="COLUMN", help="the service's ids of companies")
    companies.add_argument("--company-profnet-url", metavar="COLUMN", help="profile URLs")
    companies.add_argument("--name", metavar="COLUMN", help="names; one request for each")
    find.add_argument("--per-company", type=int, default=10, metavar="N", help="at most (10)")
    find.add_argument("--all", action="store_true", help="read everybody who matches")
    add_split_by(find)
    find.add_argument(
        "--accounts",
        type=_table_path,
        metavar="FILE",
        help="write the companies with what became of them to a .csv, .parquet or .xlsx file",
    )
    _add_common(find)
    add_filters(find)
    find.set_defaults(run=_run_find_people)


def _add_export(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="write people to a file, any number of them",
        description="Write all people that match to a file. The file appears when it is complete. "
        "If it is interrupted, the same command resumes where it stopped.",
        allow_abbrev=False,
        epilog=CONNECTION,
    )
    export.add_argument(
        "file",
        type=_path,
        help="ends in .csv, .parquet or .ndjson (one person in JSON per line), or is a folder, "
        "with no ending, for many Parquet files",
    )
    export.add_argument("--limit", type=int, help="people at most (all)")
    export.add_argument(
        "--no-resume",
        action="store_true",
        help="start over, and delete what an interrupted command left",
    )
    export.add_argument("--page-size", type=int, metavar="N", help="people per request (100)")
    add_split_by(export)
    _add_connection(export)
    add_filters(export)
    export.set_defaults(run=_run_export)


def _add_forget(commands: Any) -> None:
    forget = commands.add_parser(
        "forget",
        help="remove people from the cache, and list the files that hold them",
        description="Remove people from the responses that are stored on this machine, and list "
        "the journals, exports and tables under a folder that hold them; those are left alone.",
    )
    forget.add_argument("--email", nargs="+", metavar="EMAIL", help="the people, by address")
    forget.add_argument("--profnet-url", nargs="+", metavar="URL", help="the people, by profile")
    forget.add_argument("--folder", type=Path, help="where your files are")
    forget.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    forget.set_defaults(run=_run_forget)


def _path(text: str) -> Path | str:
    """Return a path as it was typed: a Path forgets the separator that ends the name of a folder.

    >>> _path("people/")
    'people/'
    """
    return text if text.endswith(("/", os.sep)) else Path(text)


def _table_path(text: str) -> Path:
    """Return the path of a file that a table can be written to."""
    try:
        check_suffix(text, tuple(_WRITERS), "tables")
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--out",
        type=_table_path,
        metavar="FILE",
        help="write all columns to a .csv, .parquet or .xlsx file; after a failure, what was read "
        "before goes to FILE with .partial in its name",
    )
    _add_connection(command)


def _add_connection(command: argparse.ArgumentParser) -> None:
    add_sandbox(command)
    command.add_argument("--refresh", action="store_true", help="ask the service, not the cache")


def _run_sequences(options: argparse.Namespace) -> None:
    with connected(options):
        frame = of.sequences(
            name=options.name,
            status=options.status,
            created_by_user_id=options.created_by_user_id,
            created_by_user_email=options.created_by_user_email,
            refresh=options.refresh,
        )
    _show(frame, _SEQUENCE_COLUMNS, options.out)


def _run_mailboxes(options: argparse.Namespace) -> None:
    with connected(options):
        frame = of.mailboxes(
            status=options.status,
            email_provider=options.email_provider,
            user_email=options.user_email,
            refresh=options.refresh,
        )
    _show(frame, _MAILBOX_COLUMNS, options.out)


def _run_search(options: argparse.Namespace) -> None:
    saved, fields = filters_of(options)
    with connected(options):
        if options.count:
            print(f"{of.count_people(saved, refresh=options.refresh, **fields):,}")
            return
        limit = None if options.all else options.limit
        frame = of.search_people(
            saved, limit=limit, split_by=options.split_by, refresh=options.refresh, **fields
        )
    columns = [*_SEARCH_COLUMNS, *([options.split_by] if options.split_by else [])]
    _show(frame, columns, options.out)


def _run_find_people(options: argparse.Namespace) -> None:
    accounts = read_as_text(options.file)
    saved, fields = filters_of(options)
    with connected(options):
        found = accounts.outreach.find_people(
            saved,
            domain=options.domain,
            company_id=options.company_id,
            company_profnet_url=options.company_profnet_url,
            name=options.name,
            per_company=None if options.all else options.per_company,
            split_by=options.split_by,
            refresh=options.refresh,
            **fields,
        )
    print(f"{in_shell(str(found))}\n")
    _show(found.people, ["account_row", "account_rank", *_SEARCH_COLUMNS], options.out)
    if options.accounts is not None:
        _show(found.accounts, [], options.accounts)


def _run_export(options: argparse.Namespace) -> None:
    saved, fields = filters_of(options)
    with connected(options):
        path = of.export_people(
            options.file,
            saved,
            limit=options.limit,
            resume=not options.no_resume,
            page_size=options.page_size,
            split_by=options.split_by,
            refresh=options.refresh,
            **fields,
        )
    print(f"The people are in {path}")


def _run_forget(options: argparse.Namespace) -> None:
    found = of.forget(
        email=options.email,
        profnet_url=options.profnet_url,
        folder=options.folder,
        dry_run=options.dry_run,
    )
    if found.empty:
        print("Nothing on this machine holds them.")
    else:
        print(printable(found.to_string(index=False), keep="\n"))


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
