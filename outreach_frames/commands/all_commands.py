"""The commands that call one public function, and the list of all commands."""

from __future__ import annotations

import argparse
import contextlib
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
    ALL,
    EXIT_FAILURE,
    EXIT_OK,
    Command,
    call,
    option,
    output_path,
    read_table,
)
from outreach_frames.commands.terminal import (
    fit_lines,
    format_table,
    print_card,
    print_message,
    print_text,
)
from outreach_frames.common.text import plural
from outreach_frames.errors import ConfigurationError, InvalidInputError

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


def _run(options: argparse.Namespace) -> None:
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


RUN_SANDBOX: Final = Command(
    "sandbox",
    "run the embedded service until Ctrl-C",
    _run,
    [".sandbox:serve"],
    description="Run the embedded service with invented data until Ctrl-C, reachable from this "
    "machine only. The command prints the address, the token and a request to try.",
)


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


_SEARCH_COLUMNS = ["name", "title", "location", "company_name", "company_size"]


def _run_login(options: argparse.Namespace) -> None:
    with call(of.login, options) as client:
        print_text(
            f"The service at {client.base_url} accepts the token. Address and token are stored in "
            f"the system's keyring as the profile {options.profile}."
        )


def _run_check(options: argparse.Namespace) -> int:
    """Check the service, print the findings with their advice, and return the exit code."""
    from outreach_frames.service_check import FAILED, WARNING  # noqa: PLC0415 - slow to import

    found = call(of.check, options)
    for row in found.to_dict("records"):
        print_message(f"{row['status']:8} {row['check']}: {row['detail']}", options)
        if row["advice"]:
            print_message(f"{'':8} {row['advice']}", options)
    if options.out is not None:
        print_text(save_table(found, options.out))
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
        print_text(f"{found:,}")
    else:
        _print_or_save_counts(options, found)


def _run_capacity(options: argparse.Namespace) -> None:
    mailboxes = call(of.mailboxes, options)
    plan = call(of.sending_capacity, options, mailboxes=mailboxes)
    started = ["leads_started"] if options.email_days else []
    _print_or_save(options, plan, ["date", "email", "emails", *started, "leads_finished"])
    if not plan.empty:
        print_text(f"The last sending day is {plan.attrs['last_day']}.")


def _run_find_people(options: argparse.Namespace) -> None:
    accounts = read_table(options).outreach
    found = call(accounts.find_people, options)
    print_card(found._card(), options)
    print_text("")
    _print_or_save(options, found.people, ["account_row", "account_rank", *_SEARCH_COLUMNS])
    if options.accounts is None:
        print_text("--accounts FILE writes the companies with their status to a file.")
    else:
        print_text(save_table(found.accounts, options.accounts))


def _run_forget(options: argparse.Namespace) -> None:
    found = call(of.forget, options)
    for row in found.to_dict("records"):
        line = f"{row['kind']}  rows: {row['rows']}, removed: {row['removed']}  {row['path']}"
        if isinstance(row["how"], str):
            line += f" ({row['how']})"
        print_text(fit_lines(line))
    if found.empty:
        print_text("No searched file contains these people.")
    if options.out is not None:
        print_text(save_table(found, options.out))


def _show(
    function: Callable[..., pd.DataFrame], columns: list[str] | None = None
) -> Callable[[argparse.Namespace], None]:
    """Return a function that calls another one, and prints or saves its table."""
    return lambda options: _print_or_save(options, call(function, options), columns)


def _print_or_save(
    options: argparse.Namespace, frame: pd.DataFrame, columns: list[str] | None = None
) -> None:
    """Write a table to the file of --out, or print some of its columns; by default all."""
    if options.out is not None:
        print_text(save_table(frame, options.out))
        return
    if "columns" in options and options.columns is not None:
        columns = None
    table = format_table(frame if columns is None else frame[columns])
    size = f"{_row_count(frame)}, {plural(frame.shape[1], 'column')}"
    print_text(f"{table}\n\n{fit_lines(f'{size}; --out FILE writes all rows and columns.')}")


def _print_or_save_counts(options: argparse.Namespace, counts: pd.DataFrame) -> None:
    """Write a table of counts to the file of --out, or print all its rows."""
    if options.out is not None:
        print_text(save_table(counts, options.out))
        return
    total = plural(counts.attrs["total"], "person", "people")
    table = format_table(counts, len(counts))
    print_text(f"{table}\n\n{fit_lines(f'The whole search finds {total}.')}")


def save_table(frame: pd.DataFrame, file: Path) -> str:
    """Write a table to a file and return the message to print."""
    suffix = file.suffix.lower()
    if suffix == ".xlsx":
        written = frame.outreach.to_excel(file)
    elif suffix == ".parquet":
        written = frame.outreach.to_parquet(file)
    else:
        written = frame.outreach.to_csv(file, sep="\t" if suffix == ".tsv" else ",")
    return f"{_row_count(frame)} written to {written}"


def _row_count(frame: pd.DataFrame) -> str:
    """Count a frame's rows, and the people that its search found."""
    total = frame.attrs.get("total", 0)
    rows = len(frame)
    return f"{rows:,} of {total:,} people" if total and total > rows else plural(rows, "row")


_TABLE_PATH: Final = output_path((".csv", ".parquet", ".xlsx", ".tsv"), "tables")
_OUT: Final = option(
    "--out",
    type=_TABLE_PATH,
    metavar="FILE",
    help="write all columns to a .csv, .tsv, .xlsx or .parquet file",
)


def _list_command(endpoint: spec.Endpoint) -> Command:
    """Build the command that lists a resource."""
    listed = endpoint.listed
    # The terminal shows no dates, nested objects or foreign ids.
    shown = [
        field.name
        for field in listed.members
        if not field.format and not field.members and not field.name.endswith("_id")
    ]
    return Command(
        listed.name,
        endpoint.note,
        _show(getattr(of, listed.name), shown),
        [f":{listed.name}"],
        options=[_OUT],
    )


COMMANDS: Final = (
    Command(
        "demo",
        "try the toolkit without an account",
        functions=[".demo:run_demo"],
    ),
    RUN_SANDBOX,
    Command(
        "login",
        "store the service's address and the token in the system's keyring",
        _run_login,
        [":login"],
        arguments=["base_url"],
    ),
    Command(
        "logout",
        "remove the address and the token from the system's keyring",
        functions=[":logout"],
    ),
    Command(
        "check",
        "check whether the service can be used",
        _run_check,
        [":check"],
        options=[
            option("--strict", action="store_true", help="exit with code 1 also after warnings"),
            _OUT,
        ],
    ),
    *map(_list_command, spec.LISTS),
    Command(
        "search",
        "search people and export the table",
        _run_search,
        [":search_people"],
        options=[ALL, _OUT],
    ),
    Command(
        "count",
        "count people, in total or per value of a filter",
        _run_count,
        [":count_people"],
        options=[_OUT],
    ),
    Command(
        "explain",
        "show which filter or value excludes people",
        lambda options: _print_or_save_counts(options, call(of.explain_search, options)),
        [":explain_search"],
        options=[_OUT],
    ),
    Command(
        "find-people",
        "find people at the companies of a file",
        _run_find_people,
        [".accounts.find_people:find_people", ".files.read:read_prospects"],
        arguments=["path"],
        options=[
            ALL,
            option(
                "--accounts",
                type=_TABLE_PATH,
                metavar="FILE",
                help="write the companies with their status to a file, in any format of --out",
            ),
            _OUT,
        ],
    ),
    Command(
        "export",
        "write any number of people to a file",
        lambda options: print_text(f"The people were written to {call(of.export_people, options)}"),
        [":export_people"],
        options=[
            option(
                "path",
                help="a .csv or .parquet file, or a folder, without an ending, for many Parquet "
                "files",
            )
        ],
    ),
    Command(
        "contacts",
        "read contacts by id or email address",
        _show(of.contacts, ["asked", "found", "name", "title", "company_name"]),
        [":contacts"],
        arguments=["ids"],
        options=[_OUT],
    ),
    Command(
        "lead-list",
        "read the leads of a lead list",
        _show(of.lead_list),
        [":lead_list"],
        arguments=["lead_list_id"],
        options=[_OUT],
    ),
    Command(
        "capacity",
        "plan how many emails each mailbox sends per day",
        _run_capacity,
        [":sending_capacity", ":mailboxes"],
        arguments=["leads"],
        options=[_OUT],
    ),
    ADD_LEADS,
    SNAPSHOT,
    COMPARE,
    Command(
        "forget",
        "remove people from caches and journals, and list the files that name them",
        _run_forget,
        [":forget"],
        without=["client"],
        options=[_OUT],
    ),
)
