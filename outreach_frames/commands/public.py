"""The commands that call one public function, and the list of all commands."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Final

import pandas as pd

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.accounts.find_people import find_people
from outreach_frames.commands.add_leads import ADD_LEADS
from outreach_frames.commands.history import COMPARE, SNAPSHOT
from outreach_frames.commands.lab import LAB
from outreach_frames.commands.options import (
    COLUMNS,
    EXIT_FAILURE,
    EXIT_OK,
    REFRESH,
    SANDBOX_OPTION,
    SPLIT_BY,
    TABLE_FILE,
    Command,
    add_filters,
    call,
    filter_name,
    first_sentence,
    option,
    options_of,
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

_PLAN: Final = ("leads", "emails_per_lead", "email_days", "start", "freq", "spread", "holidays")
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
    plan = of.sending_capacity(mailboxes, **{name: getattr(options, name) for name in _PLAN})
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
    print_text(f"The people were written to {call(of.export_people, options)}")


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
_LIST_OPTIONS: Final = (_OUT, SANDBOX_OPTION, REFRESH)


def _list_command(endpoint: spec.Endpoint) -> Command:
    """Build the command that lists a resource, with one option per filter of the resource."""
    listed = endpoint.listed
    function = getattr(of, listed.name)
    # The terminal shows no dates, nested objects or foreign ids.
    shown = [
        field.name
        for field in listed.members
        if not field.format and not field.members and not field.name.endswith("_id")
    ]
    filters = [
        field.name for field in endpoint.query if field.name in signature(function).parameters
    ]
    return Command(
        listed.name,
        endpoint.note,
        first_sentence(function),
        (*options_of(function, *filters), *_LIST_OPTIONS),
        lambda options: _print_or_save(call(function, options), shown, options.out),
    )


_LOGIN_PROFILE: Final = options_of(of.login, "profile")
_ALL: Final = option("--all", action="store_true", help="read all matching people")

COMMANDS: Final = (
    Command(
        "demo",
        "try the toolkit without an account",
        first_sentence(run_demo),
        (option("--folder", type=Path, default=Path(), help="the folder for the files"),),
        lambda options: run_demo(options.folder),
    ),
    RUN_SANDBOX,
    LAB,
    Command(
        "login",
        "store the service's address and the token in the system's keyring",
        first_sentence(of.login),
        (
            *options_of(of.login, "base_url", base_url={"nargs": "?", "metavar": "ADDRESS"}),
            *_LOGIN_PROFILE,
        ),
        _run_login,
    ),
    Command(
        "logout",
        "remove the address and the token from the system's keyring",
        first_sentence(of.logout),
        _LOGIN_PROFILE,
        lambda options: call(of.logout, options),
    ),
    Command(
        "check",
        "check whether the service can be used",
        f"{first_sentence(of.check)} The output contains no values of people or mailboxes.",
        (
            *options_of(of.check, "emails", "lead_list_id"),
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
            *options_of(of.search_people, "limit"),
            _ALL,
            option("--count", action="store_true", help="only print the number of matches"),
            COLUMNS,
            SPLIT_BY,
            *_LIST_OPTIONS,
            add_filters,
        ),
        _run_search,
        "%(prog)s [FILTERS] [--limit LIMIT | --all | --count] [--out FILE] [--sandbox]",
    ),
    Command(
        "count",
        "count people, in total or per value of a filter",
        first_sentence(of.count_people),
        (
            *options_of(
                of.count_people, "by", "max_requests", by={"type": filter_name, "metavar": "FILTER"}
            ),
            *_LIST_OPTIONS,
            add_filters,
        ),
        _run_count,
        "%(prog)s [FILTERS] [--by FILTER ...] [--out FILE] [--sandbox]",
    ),
    Command(
        "explain",
        "show which filter or value excludes people",
        first_sentence(of.explain_search),
        (*_LIST_OPTIONS, add_filters),
        lambda options: _print_or_save(call(of.explain_search, options), None, options.out),
        "%(prog)s FILTERS [--out FILE] [--sandbox]",
    ),
    Command(
        "find-people",
        "find people at the companies of a file",
        f"{first_sentence(find_people)} Choose the people with filters.",
        (
            *TABLE_FILE,
            *options_of(
                find_people,
                *("domain", "company_id", "company_profnet_url", "name", "per_company"),
                "account_columns",
            ),
            _ALL,
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
        "%(prog)s FILE --domain COLUMN [--per-company N] [FILTERS] [--out FILE] [--sandbox]",
    ),
    Command(
        "export",
        "write any number of people to a file",
        f"{first_sentence(of.export_people)} After an interruption, the same command resumes.",
        (
            *options_of(
                of.export_people,
                *("path", "limit", "resume", "page_size"),
                path={
                    "metavar": "FILE",
                    "type": _path,
                    "help": "a .csv or .parquet file, or a "
                    "folder, without an ending, for many Parquet files",
                },
            ),
            COLUMNS,
            SPLIT_BY,
            SANDBOX_OPTION,
            REFRESH,
            add_filters,
        ),
        _run_export,
        "%(prog)s FILE [FILTERS] [--limit N] [--no-resume] [--sandbox]",
    ),
    Command(
        "contacts",
        "read contacts by id or email address",
        first_sentence(of.contacts),
        (
            *options_of(
                of.contacts, "ids", "emails", ids={"nargs": "*", "help": "ids of contacts"}
            ),
            *_LIST_OPTIONS,
        ),
        _run_contacts,
    ),
    Command(
        "lead-list",
        "read the leads of a lead list",
        first_sentence(of.lead_list),
        (*options_of(of.lead_list, "lead_list_id"), *_LIST_OPTIONS),
        _run_lead_list,
    ),
    Command(
        "capacity",
        "plan how many emails each mailbox sends per day",
        first_sentence(of.sending_capacity),
        (
            *options_of(
                of.sending_capacity,
                *_PLAN,
                leads={"help": "the number of leads"},
                spread={"help": "by_limit or evenly (default: by_limit)"},
                freq={"help": "sending days, as a pandas frequency (default: B, weekdays)"},
                start={"help": "the first sending day, YYYY-MM-DD (default: today)"},
                holidays={"help": "days without emails, YYYY-MM-DD"},
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
        first_sentence(of.forget),
        (*options_of(of.forget, "email", "profnet_url", "folder", "files", "dry_run"), _OUT),
        _run_forget,
    ),
)
