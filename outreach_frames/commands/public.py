"""The commands that call one public function, and the list of all commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from inspect import getdoc, signature
from pathlib import Path
from typing import Any, Final

import pandas as pd

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.profiles import DEFAULT_PROFILE
from outreach_frames.commands.add_leads import ADD_LEADS
from outreach_frames.commands.history import COMPARE, SNAPSHOT
from outreach_frames.commands.lab import LAB
from outreach_frames.commands.options import (
    COLUMNS,
    ENCODING,
    EXIT_FAILURE,
    EXIT_OK,
    REFRESH,
    SANDBOX_OPTION,
    SHEET_NAME,
    SPLIT_BY,
    TABLE_FILE,
    Command,
    add_filters,
    call,
    filter_name,
    option,
    output_path,
)
from outreach_frames.commands.sandbox import RUN_SANDBOX
from outreach_frames.commands.terminal import fit_lines, format_table, print_result, print_text
from outreach_frames.common.text import plural
from outreach_frames.demo import run_demo
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_file import write_csv
from outreach_frames.files.excel import write_excel
from outreach_frames.files.parquet import write_parquet
from outreach_frames.files.read import read_as_text
from outreach_frames.service_check import FAILED, WARNING

_SEARCH_COLUMNS = ["name", "title", "location", "company_name", "company_size"]
# Functions that write a table, by the ending of the file's name.
_WRITERS: Final[dict[str, Callable[[pd.DataFrame, Path], Path]]] = {
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".xlsx": write_excel,
    ".tsv": partial(write_csv, sep="\t"),
}


def _run_login(options: argparse.Namespace) -> None:
    with call(of.login, options) as client:
        print_result(
            f"The service at {client.base_url} accepts the token. Address and token are stored in "
            f"the system's keyring as the profile {options.profile}."
        )


def _run_check(options: argparse.Namespace) -> int:
    """Check the service, print the findings with their advice, and return the exit code."""
    found = call(of.check, options)
    for row in found.to_dict("records"):
        print_result(f"{row['status']:8} {row['check']}: {row['detail']}")
        if row["advice"]:
            print_result(f"{'':8} {row['advice']}")
    if options.out is not None:
        print_text(save_table(found, options.out))
    unwanted = WARNING if options.strict else FAILED
    return EXIT_FAILURE if bool((found["status"] >= unwanted).any()) else EXIT_OK


def _run_search(options: argparse.Namespace) -> None:
    if options.count:
        print_text(f"{call(of.count_people, options):,}")
        return
    limit = None if options.all else options.limit
    frame = call(of.search_people, options, limit=limit)
    shown = [*_SEARCH_COLUMNS, *filter(None, [options.split_by])]
    _print_or_save(frame, _shown(options, frame, shown), options.out)


def _run_count(options: argparse.Namespace) -> None:
    if options.out is not None and options.by is None:
        raise InvalidInputError("--out saves only counts per value. Pass --by FILTER too.")
    found: Any = call(of.count_people, options)
    if options.by is None:
        print_text(f"{found:,}")
    else:
        _print_or_save(found, None, options.out)


def _run_contacts(options: argparse.Namespace) -> None:
    frame = call(of.contacts, options, ids=options.ids or None)
    _print_or_save(frame, ["asked", "found", "name", "title", "company_name"], options.out)


def _run_lead_list(options: argparse.Namespace) -> None:
    leads = call(of.lead_list, options)
    _print_or_save(leads, list(map(str, leads.columns)), options.out)


def _run_capacity(options: argparse.Namespace) -> None:
    mailboxes = call(of.mailboxes, options)
    names = ("leads", "emails_per_lead", "email_days", "start", "freq", "spread", "holidays")
    plan = of.sending_capacity(mailboxes, **{name: getattr(options, name) for name in names})
    started = ["leads_started"] if options.email_days else []
    _print_or_save(plan, ["date", "email", "emails", *started, "leads_finished"], options.out)
    if not plan.empty:
        print_text(f"The last sending day is {plan.attrs['last_day']}.")


def _run_find_people(options: argparse.Namespace) -> None:
    accounts = call(read_as_text, options, path=options.file)
    most = None if options.all else options.per_company
    found = call(accounts.outreach.find_people, options, per_company=most)
    print_result(f"{found}\n")
    shown = ["account_row", "account_rank", *_SEARCH_COLUMNS]
    _print_or_save(found.people, _shown(options, found.people, shown), options.out)
    if options.accounts is not None:
        print_text(save_table(found.accounts, options.accounts))


def _shown(options: argparse.Namespace, people: pd.DataFrame, default: list[str]) -> list[str]:
    """Return the columns to print: those chosen with --columns, or the default columns."""
    return default if options.columns is None else list(people.columns)


def _run_export(options: argparse.Namespace) -> None:
    print_text(f"The people were written to {call(of.export_people, options, path=options.file)}")


def _run_forget(options: argparse.Namespace) -> None:
    found = call(of.forget, options)
    for row in found.to_dict("records"):
        line = f"{row['kind']}  rows: {row['rows']}, removed: {row['removed']}  {row['path']}"
        if isinstance(row.get("reason"), str):
            line += f" ({row['reason']})"
        print_text(fit_lines(line))
    if found.empty:
        print_text("No searched file contains these people.")
    if options.out is not None:
        print_text(save_table(found, options.out))


def _add_company_columns(command: argparse.ArgumentParser) -> None:
    companies = command.add_argument_group("columns that identify the companies")
    companies.add_argument("--domain", metavar="COLUMN", help="web addresses, domains or emails")
    companies.add_argument("--company-id", metavar="COLUMN", help="the service's company ids")
    companies.add_argument("--company-profnet-url", metavar="COLUMN", help="profile URLs")
    companies.add_argument("--name", metavar="COLUMN", help="company names; one request each")


def _path(text: str) -> Path | str:
    """Parse a path and keep the trailing separator of a folder, which `Path` drops.

    >>> _path("people/")
    'people/'
    """
    return text if text.endswith(("/", os.sep)) else Path(text)


def _print_or_save(frame: pd.DataFrame, columns: list[str] | None, out: Path | None) -> None:
    """Write a table to a file, or print it; `columns` is None for a table of counts."""
    if out is not None:
        print_text(save_table(frame, out))
        return
    if columns is None:
        table = format_table(frame, len(frame))
        note = f"The whole search finds {plural(frame.attrs['total'], 'person', 'people')}."
    else:
        table = format_table(frame[columns])
        size = f"{plural(len(frame), 'row')}, {plural(frame.shape[1], 'column')}"
        note = f"{size}; --out FILE writes all rows and columns."
    print_text(f"{table}\n\n{fit_lines(note)}")


def save_table(frame: pd.DataFrame, file: Path) -> str:
    """Write a table to a file and return the message to print."""
    return f"{plural(len(frame), 'row')} written to {_WRITERS[file.suffix.lower()](frame, file)}"


_TABLE_PATH: Final = output_path(tuple(_WRITERS), "tables")
_OUT: Final = option(
    "--out",
    type=_TABLE_PATH,
    metavar="FILE",
    help="write all columns to a .csv, .tsv, .xlsx or .parquet file; after a failure, the partial "
    "result is in a file with .partial in its name",
)
_LOGIN_PROFILE: Final = option(
    "--profile",
    metavar="NAME",
    default=DEFAULT_PROFILE,
    help=f"the profile's name (default: {DEFAULT_PROFILE})",
)
_LIST_OPTIONS: Final = (_OUT, SANDBOX_OPTION, REFRESH)


def _list_command(endpoint: spec.Endpoint) -> Command:
    """Build the command that lists a resource, with one option per filter of the resource."""
    listed = endpoint.listed
    function = getattr(of, listed.name)
    known = spec.columns(listed.members)
    # The terminal shows no dates, nested objects or foreign ids.
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
        (*options, *_LIST_OPTIONS),
        lambda options: _print_or_save(call(function, options), shown, options.out),
    )


COMMANDS: Final = (
    Command(
        "demo",
        "try the toolkit without an account",
        "Start the embedded service, search people, show the tables, and write prospects.csv and "
        "headcount.png to a folder.",
        (
            option(
                "--folder",
                type=Path,
                default=Path(),
                help="the folder for these files, created if missing (default: the current folder)",
            ),
        ),
        lambda options: run_demo(options.folder),
    ),
    RUN_SANDBOX,
    LAB,
    Command(
        "login",
        "store the service's address and the token in the system's keyring",
        "Ask for the service's address and the token, try them, and store them in the system's "
        "keyring. If the stored profile works, the command asks for nothing.",
        (
            option("base_url", nargs="?", metavar="ADDRESS", help="the service's address"),
            _LOGIN_PROFILE,
        ),
        _run_login,
    ),
    Command(
        "logout",
        "remove the address and the token from the system's keyring",
        "Remove a profile of `outreach-frames login` from the system's keyring, if it exists.",
        (_LOGIN_PROFILE,),
        lambda options: call(of.logout, options),
    ),
    Command(
        "check",
        "check whether the service can be used",
        "Check the connection, and whether the service's responses are as documented. "
        "At most 15 read requests are sent. The output contains no values of people or mailboxes.",
        (
            option("--emails", nargs="+", metavar="EMAIL", help="up to 5 contacts to read"),
            option("--lead-list-id", metavar="ID", help="the lead list to read"),
            option("--strict", action="store_true", help="exit with code 1 also after warnings"),
            _OUT,
            SANDBOX_OPTION,
        ),
        _run_check,
    ),
    *map(_list_command, spec.LISTS),
    Command(
        "search",
        "search people and export the table",
        "Search people. A person must match every filter, with at least one of its values. Quote "
        "values that contain spaces.",
        (
            option(
                "--limit", type=int, default=1000, help="maximum number of people (default: 1000)"
            ),
            option("--all", action="store_true", help="read all matching people"),
            option("--count", action="store_true", help="only print the number of matches"),
            COLUMNS,
            SPLIT_BY,
            *_LIST_OPTIONS,
            add_filters,
        ),
        _run_search,
        usage="%(prog)s [FILTERS] [--limit LIMIT | --all | --count] [--out FILE] [--sandbox]",
    ),
    Command(
        "count",
        "count people, in total or per value of a filter",
        "Count the matching people, in total or per value of a filter.",
        (
            option(
                "--by",
                nargs="+",
                action="extend",
                metavar="FILTER",
                type=filter_name,
                help="one count per value of this filter; for several filters, per combination of "
                "values",
            ),
            option(
                "--max-requests",
                type=int,
                default=200,
                metavar="N",
                help="maximum number of requests with --by (default: 200)",
            ),
            *_LIST_OPTIONS,
            add_filters,
        ),
        _run_count,
        usage="%(prog)s [FILTERS] [--by FILTER ...] [--out FILE] [--sandbox]",
    ),
    Command(
        "explain",
        "show which filter or value excludes people",
        "Drop each filter and value of a search in turn, and count the people found without it.",
        (*_LIST_OPTIONS, add_filters),
        lambda options: _print_or_save(call(of.explain_search, options), None, options.out),
        usage="%(prog)s FILTERS [--out FILE] [--sandbox]",
    ),
    Command(
        "find-people",
        "find people at the companies of a file",
        "Find the first few people at each company of a file, and report each company's status. "
        "Choose the people with filters.",
        (
            TABLE_FILE,
            SHEET_NAME,
            ENCODING,
            _add_company_columns,
            option(
                "--per-company",
                type=int,
                default=10,
                metavar="N",
                help="maximum number of people per company (default: 10)",
            ),
            option("--all", action="store_true", help="read all matching people"),
            COLUMNS,
            SPLIT_BY,
            option(
                "--accounts",
                type=_TABLE_PATH,
                metavar="FILE",
                help="write the companies with their status to a file, in any format of --out",
            ),
            *_LIST_OPTIONS,
            add_filters,
        ),
        _run_find_people,
        usage="%(prog)s FILE --domain COLUMN [--per-company N] [FILTERS] [--out FILE] [--sandbox]",
    ),
    Command(
        "export",
        "write any number of people to a file",
        "Write all matching people to a file, which appears only when complete. After an "
        "interruption, the same command resumes.",
        (
            option(
                "file",
                type=_path,
                help="a .csv or .parquet file, or a folder, without an ending, for many Parquet "
                "files",
            ),
            option("--limit", type=int, help="maximum number of people (default: all)"),
            option(
                "--no-resume",
                dest="resume",
                action="store_false",
                help="start over and delete the files of an interrupted export",
            ),
            option("--page-size", type=int, metavar="N", help="people per request (default: 100)"),
            COLUMNS,
            SPLIT_BY,
            SANDBOX_OPTION,
            REFRESH,
            add_filters,
        ),
        _run_export,
    ),
    Command(
        "contacts",
        "read contacts by id or email address",
        "Read contacts of the account by id or email address.",
        (
            option("ids", nargs="*", metavar="ID", help="ids of contacts"),
            option("--emails", nargs="+", metavar="EMAIL", help="email addresses"),
            *_LIST_OPTIONS,
        ),
        _run_contacts,
    ),
    Command(
        "lead-list",
        "read the leads of a lead list",
        "Read the leads, with all their fields, of a lead list that was made in the web app.",
        (option("lead_list_id", metavar="ID", help="the lead list's id"), *_LIST_OPTIONS),
        _run_lead_list,
    ),
    Command(
        "capacity",
        "plan how many emails each mailbox sends per day",
        "Plan how many emails each active mailbox sends per day until all leads have all emails.",
        (
            option("leads", type=int, metavar="LEADS", help="the number of leads"),
            option(
                "--emails-per-lead",
                type=int,
                default=1,
                metavar="N",
                help="emails per lead (default: 1)",
            ),
            option(
                "--email-days",
                nargs="+",
                type=int,
                metavar="N",
                help="the earliest day of each email, in sending days after the lead's first "
                "email, such as 0 3 7; replaces --emails-per-lead",
            ),
            option("--holidays", nargs="+", metavar="DATE", help="days without emails, YYYY-MM-DD"),
            option("--start", metavar="DATE", help="the first day, YYYY-MM-DD (default: today)"),
            option("--freq", default="B", help="sending days, as a pandas frequency (B: weekdays)"),
            option(
                "--spread",
                default="by_limit",
                help="divide the emails among the mailboxes by_limit or evenly (default: by_limit)",
            ),
            *_LIST_OPTIONS,
        ),
        _run_capacity,
    ),
    ADD_LEADS,
    SNAPSHOT,
    COMPARE,
    Command(
        "forget",
        "remove people from the cache and list the files that contain them",
        "Remove people from the responses stored on this machine. List the journals, exports and "
        "tables in a folder that contain these people. --files also removes the people from this "
        "package's files.",
        (
            option("--email", nargs="+", metavar="EMAIL", help="the people's email addresses"),
            option("--profnet-url", nargs="+", metavar="URL", help="the people's profile URLs"),
            option("--folder", type=Path, help="the folder with your files"),
            option("--files", action="store_true", help="clean this package's files in FOLDER too"),
            option("--dry-run", action="store_true", help="only show what would be removed"),
            _OUT,
        ),
        _run_forget,
    ),
)
