"""The commands that call one public function, and the list of all commands."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE
from outreach_frames.commands.add_leads import ADD_LEADS
from outreach_frames.commands.options import (
    EXIT_FAILURE,
    EXIT_OK,
    STDOUT,
    Command,
    call,
    read_table,
)
from outreach_frames.commands.terminal import (
    fit_lines,
    format_table,
    print_card,
    print_data,
    print_message,
    print_note,
    print_text,
)
from outreach_frames.common.text import plural
from outreach_frames.errors import ConfigurationError, InvalidInputError
from outreach_frames.files.csv_file import csv_text
from outreach_frames.files.json_records import json_records

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox


def _start(options: argparse.Namespace) -> Sandbox:
    """Start a sandbox; raise usage errors for bad options or a missing package."""
    from outreach_frames.sandbox import serve  # noqa: PLC0415 - an optional extra

    try:
        return call(serve, options)
    except ImportError as error:
        raise ConfigurationError(str(error)) from error
    except (OSError, ValueError) as error:
        raise InvalidInputError(str(error)) from error


def _run_sandbox(options: argparse.Namespace) -> None:
    sandbox = _start(options)
    with sandbox, contextlib.suppress(KeyboardInterrupt):
        # Never print a key that the user chose: it may be used elsewhere too.
        key = sandbox.api_key if options.api_key is None else ""
        print(f"The sandbox listens at {sandbox.url}, on this machine only. Ctrl-C stops it.")
        print("/openapi.json describes its interface for other tools.\n")
        print(f"export {BASE_URL_VARIABLE}={sandbox.url}")
        print(f"export {API_KEY_VARIABLE}={key or '...  # the key that you chose'}\n")
        token = f"{spec.AUTHORIZATION_SCHEME} {key or f'${API_KEY_VARIABLE}'}"
        path = spec.LIST_SEQUENCES.path
        print(f'curl -s -H "{spec.AUTHORIZATION_HEADER}: {token}" {sandbox.url}{path}')
        print("\nor in Python:\n")
        print("import outreach_frames as of")
        arguments = f'"{sandbox.url}", "{key}"' if key else ""
        print(f"of.connect({arguments})", flush=True)
        threading.Event().wait()


def _run_snapshot(options: argparse.Namespace) -> None:
    from outreach_frames.history.snapshots import count_stored_people  # noqa: PLC0415 - slow to import

    path = call(of.snapshot_people, options)
    if not options.quiet:
        print_note(f"{plural(count_stored_people(path), 'person', 'people')} written to {path}")


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
        print_card(comparison._card())
        print_note("--out FILE writes the tables to a file.")
        return
    write = comparison.to_excel if options.out.suffix else comparison.to_csv
    path = write(options.out)
    if not options.quiet:
        print_note(f"{comparison.headline}, written to {path}")


_SEARCH_COLUMNS = ["name", "title", "location", "company_name", "company_size"]


def _run_login(options: argparse.Namespace) -> None:
    with call(of.login, options) as client:
        print_note(
            f"The service at {client.base_url} accepts the token. Address and token are stored in "
            f"the system's keyring as the profile {options.profile}."
        )


def _run_check(options: argparse.Namespace) -> int:
    """Check the service, print the findings with their advice, and return the exit code."""
    from outreach_frames.service_check import FAILED, WARNING  # noqa: PLC0415 - slow to import

    found = call(of.check, options)
    if not _write_data(options, found):
        for row in found.to_dict("records"):
            print_message(f"{row['status']:8} {row['check']}: {row['detail']}")
            if row["advice"]:
                print_message(f"{'':8} {row['advice']}")
    unwanted = WARNING if options.strict else FAILED
    return EXIT_FAILURE if bool((found["status"] >= unwanted).any()) else EXIT_OK


def _run_search(options: argparse.Namespace) -> None:
    frame = call(of.search_people, options)
    _print_or_save(options, frame, [*_SEARCH_COLUMNS, *filter(None, [options.split_by])])


def _run_count(options: argparse.Namespace) -> None:
    if options.out is not None and options.by is None:
        raise InvalidInputError("--out saves only counts per value. Pass --by FILTER too.")
    found: Any = call(of.count_people, options)
    if options.by is None:
        print_text(str(found))
    else:
        _print_or_save_counts(options, found)


def _run_capacity(options: argparse.Namespace) -> None:
    mailboxes = call(of.mailboxes, options)
    plan = call(of.sending_capacity, options, mailboxes=mailboxes)
    started = ["leads_started"] if options.email_days else []
    _print_or_save(options, plan, ["date", "email", "emails", *started, "leads_finished"])
    if not plan.empty:
        days = plural(plan["date"].nunique(), "sending day")
        print_note(f"All emails are sent in {days}, the last on {plan.attrs['last_day']}.")


def _run_find_people(options: argparse.Namespace) -> None:
    accounts = read_table(options).outreach
    found = call(accounts.find_people, options)
    print_card(found._card(), sys.stderr)
    print_note("")
    added = ["account_row", "account_rank"]
    if options.person_name:
        added += ["account_status", "name_match"]
    _print_or_save(options, found.people, [*added, *_SEARCH_COLUMNS])
    if options.accounts is None:
        print_note("--accounts FILE writes the table's rows with their status to a file.")
    else:
        _save_table(found.accounts, options.accounts)


def _run_forget(options: argparse.Namespace) -> None:
    found = call(of.forget, options)
    if _write_data(options, found):
        return
    for row in found.to_dict("records"):
        line = f"{row['kind']}  rows: {row['rows']}, removed: {row['removed']}  {row['path']}"
        if isinstance(row["how"], str):
            line += f" ({row['how']})"
        print_text(fit_lines(line))
    if found.empty:
        print_text("No searched file contains these people.")


def _show(
    function: Callable[..., pd.DataFrame], columns: list[str] | None = None
) -> Callable[[argparse.Namespace], None]:
    """Return a function that calls another one, and prints or saves its table."""
    return lambda options: _print_or_save(options, call(function, options), columns)


def _print_or_save(
    options: argparse.Namespace, frame: pd.DataFrame, columns: list[str] | None = None
) -> None:
    """Write a table to the file of --out, or print some of its columns; by default all."""
    if "columns" in options and options.columns is not None:
        columns = None
    if _write_data(options, frame, columns) or options.out is not None:
        return
    shown = frame if columns is None else frame[columns]
    has_id_first = columns is not None and columns[0] == "id"
    print_text(format_table(shown, prefer_first=has_id_first))
    size = f"{_row_count(frame)}, {plural(frame.shape[1], 'column')}"
    print_note(fit_lines(f"\n{size}; --out FILE writes all rows and columns."))


def _print_or_save_counts(options: argparse.Namespace, counts: pd.DataFrame) -> None:
    """Write a table of counts to the file of --out, or print all its rows."""
    if _write_data(options, counts) or options.out is not None:
        return
    print_text(format_table(counts, len(counts)))
    total = plural(counts.attrs["total"], "person", "people")
    print_note(fit_lines(f"\nThe whole search finds {total}."))


def _write_data(
    options: argparse.Namespace, frame: pd.DataFrame, columns: list[str] | None = None
) -> bool:
    """Write a table to the file of --out, or print it as CSV or JSON; return whether it is printed.

    `columns` are those of --format; --out has all columns.
    """
    to_stdout = options.out == STDOUT
    if options.out is not None and not to_stdout:
        _save_table(frame, options.out)
        return False
    form = options.format or ("csv" if to_stdout else "table")
    if form == "table":
        return False
    shown = frame if to_stdout or columns is None else frame[columns]
    print_data(csv_text(shown) if form == "csv" else json_records(shown))
    return True


def _save_table(frame: pd.DataFrame, file: Path) -> None:
    """Write a table to a file."""
    suffix = file.suffix.lower()
    if suffix == ".xlsx":
        written = frame.outreach.to_excel(file)
    elif suffix == ".parquet":
        written = frame.outreach.to_parquet(file)
    else:
        written = frame.outreach.to_csv(file, sep="\t" if suffix == ".tsv" else ",")
    print_note(f"{_row_count(frame)} written to {written}")


def _row_count(frame: pd.DataFrame) -> str:
    """Count a frame's rows, and the people that its search found."""
    total = frame.attrs.get("total", 0)
    rows = len(frame)
    return f"{rows:,} of {total:,} people" if total and total > rows else plural(rows, "row")


def _list_command(endpoint: spec.Endpoint, columns: list[str], options: dict[str, str]) -> Command:
    """Build the command that lists a resource; a narrow terminal shows its first columns."""
    name = endpoint.listed.name
    show = _show(getattr(of, name), columns)
    return Command(name, endpoint.note, show, [f":{name}"], options | _OUT)


_ALL: Final = {"--all": "read all matching people"}
_OUT: Final = {
    "--out FILE": "write all columns to a .csv, .tsv, .xlsx or .parquet file; - prints them as CSV",
    "--format FORMAT": "table (the default), csv or json: csv and json have the columns of the "
    "table, all its rows, and whole cells",
}
_QUIET: Final = {"--quiet": "print only warnings and errors, for example in cron"}

COMMANDS: Final = (
    Command(
        "demo",
        "try the toolkit without an account",
        functions=[".demo:run_demo"],
        options={"--folder FOLDER": "the folder for a CSV file and a plot; by default the current"},
        details="It finds people and adds the first ones to a sequence, on the embedded service.",
    ),
    Command(
        "sandbox",
        "run the embedded service with invented data until Ctrl-C",
        _run_sandbox,
        [".sandbox:serve"],
        {
            "--port N": "the port to listen on; 0 chooses a free one",
            "--people N": "the number of people in the world",
            "--seed N": "the seed of the world; the same seed and --people give the same world",
            "--api-key KEY": "the token for clients, by default random; never a real account's",
        },
        details="It is reachable from this machine only. The address and token are printed.",
    ),
    Command(
        "login",
        "store the service's address and the token in the system's keyring",
        _run_login,
        [":login"],
        {
            "base_url": "the service's address; by default the stored profile's, else asked for",
            "--network-name NAME": "the professional network's name in the service's field names; "
            "stored with the token",
            "--requests-per-minute N": "the number of requests per minute; stored with the token",
        },
        details="The token is hidden while you type it. A stored one is kept if it is accepted.",
    ),
    Command(
        "logout",
        "remove the address and the token from the system's keyring",
        functions=[":logout"],
        details="The service still accepts the token.",
    ),
    Command(
        "check",
        "check whether the service can be used",
        _run_check,
        [":check"],
        {
            "--emails EMAIL": "up to 5 email addresses of contacts, to check how contacts are read",
            "--lead-list-id ID": "the id of a lead list, to check how lead lists are read",
            "--strict": "exit with code 1 also after warnings",
            **_OUT,
        },
        details="At most 15 requests are sent, which only read. Look at the names in the result "
        "before you send it to others.",
    ),
    _list_command(
        spec.LIST_SEQUENCES,
        ["id", "name", "status", "created_by_user_email"],
        {
            "--name NAME": "part of the name; case is ignored",
            "--status STATUS": f"one of {', '.join(spec.SEQUENCE_STATUSES)}",
            "--created-by-user-id ID": "the id of the user who created the sequence",
            "--created-by-user-email EMAIL": "the email address of the user who created it",
        },
    ),
    _list_command(
        spec.LIST_MAILBOXES, ["id", "email", "status", "daily_email_limit", "email_provider"], {}
    ),
    Command(
        "search",
        "search people and export the table",
        _run_search,
        [":search_people"],
        {"--limit N": "maximum number of people to read", **_ALL, **_OUT},
    ),
    Command(
        "count",
        "count people, in total or per value of a filter",
        _run_count,
        [":count_people"],
        {
            "--by FILTER": "count per value of a filter, or per combination of several filters",
            "--max-requests N": "maximum number of requests with --by: one per row and the total",
            "--no-max-requests": "send any number of requests",
            **_OUT,
        },
    ),
    Command(
        "explain",
        "count people without each filter and value, and with it alone",
        lambda options: _print_or_save_counts(options, call(of.explain_search, options)),
        [":explain_search"],
        _OUT,
        details="If the search finds nobody, drop a filter or value whose people_without is not 0. "
        "If all are 0, begin with those whose people_alone is small.",
    ),
    Command(
        "find-people",
        "find people at the companies of a file",
        _run_find_people,
        [".accounts.find_people:find_people", ".files.read:read_prospects"],
        {
            "path": "a .csv, .xlsx, .xlsm or .parquet file, or a folder of .parquet files",
            "--domain COLUMN": "the column with web or email addresses; only the domain is sent",
            "--company-id COLUMN": "the column with the service's company ids",
            "--company-profnet-url COLUMN": "the column with companies' profile URLs",
            "--company-name COLUMN": "the column with company names",
            "--person-name COLUMN": "the column with people's names, or two with first and last "
            "names; finds these people",
            "--account-columns COLUMN": "columns of the file to add to the people, such as owner",
            "--per-company N": "the maximum number of people per company",
            "--split-by FILTER": "order by this filter's values, not by --person-seniorities",
            **_ALL,
            "--accounts FILE": "write the table's rows with their status to a file, as with --out",
            **_OUT,
        },
        details="The order of --person-seniorities decides who is found first. Without a column's "
        "name, columns with usual names, such as Website or Company, identify the companies.",
    ),
    Command(
        "export",
        "write any number of people to a file",
        lambda options: print_text(f"The people were written to {call(of.export_people, options)}"),
        [":export_people"],
        {
            "path": "a .csv or .parquet file, or a folder, without an ending, for many files",
            "--limit N": "maximum number of people to write; by default all",
            "--resume": "resume an export with the same arguments; --no-resume starts over",
            "--attrs": "write the search's time and filters to the file's metadata",
        },
        details="The progress is in a folder .<name>.partial next to the file, which is created or "
        "replaced only when the export is complete.",
    ),
    Command(
        "contacts",
        "read contacts by id or email address",
        _show(of.contacts, ["asked", "found", "name", "title", "company_name"]),
        [":contacts"],
        {"ids": "ids of contacts", "--emails EMAIL": "email addresses", **_OUT},
    ),
    Command(
        "lead-list",
        "read the leads of a lead list",
        _show(of.lead_list),
        [":lead_list"],
        {"lead_list_id": "the list's id, from the web app", **_OUT},
    ),
    Command(
        "capacity",
        "plan how many emails each mailbox sends per day",
        _run_capacity,
        [":sending_capacity", ":mailboxes"],
        {
            "leads": "the number of leads",
            "--email-days DAY": "each email's earliest sending day, such as 0 3 7; by default 0",
            "--start DATE": "the first sending day, as YYYY-MM-DD; by default today",
            "--freq FREQ": "the sending days, in pandas' terms: B is Monday to Friday, D every day",
            **_OUT,
        },
    ),
    ADD_LEADS,
    Command(
        "snapshot",
        "save the people that a search finds today",
        _run_snapshot,
        [":snapshot_people"],
        {
            "folder": "the folder of this search's snapshots; it is created if missing",
            "--date DATE": "the day, as YYYY-MM-DD; by default today in this machine's time zone",
            **_QUIET,
        },
        details="All people are read, without the cache. A repetition on the same day resumes.",
    ),
    Command(
        "compare",
        "show what changed between two snapshots",
        _run_compare,
        [":compare_people", ".files.read:read_prospects"],
        {
            "before": "a folder, to compare its last two snapshots, or a file or folder of people",
            "after": "a later file or folder of people",
            "--out WORKBOOK": "an .xlsx file with a sheet per table, or a folder for .csv files",
            **_QUIET,
        },
        details="People are matched by id, then by profile URL /in/<name>. People may also "
        "disappear because a search is incomplete or differs; the notes list these cases.",
    ),
    Command(
        "forget",
        "remove people from caches, and list the files that name them",
        _run_forget,
        [":forget"],
        {
            "--email EMAIL": "the people's email addresses",
            "--profnet-url URL": "the people's profile URLs",
            "--folder FOLDER": "the folder with your files, searched with all its subfolders",
            "--dry-run": "list everything and remove nothing",
            **_OUT,
        },
        details="Journals, tables, snapshots and checkpoints are listed, and never changed.",
        offline=True,
    ),
)
