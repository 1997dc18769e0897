"""What commands that search people have in common: filters, and where the service is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import API_KEY_VARIABLE, BASE_URL_VARIABLE, SANDBOX

CONNECTION: Final = (
    f"The service's address comes from {BASE_URL_VARIABLE}, the account's token from "
    f"{API_KEY_VARIABLE}. --sandbox uses the embedded service instead: no account, invented data."
)


def add_split_by(command: argparse.ArgumentParser) -> None:
    """Define --split-by."""
    command.add_argument(
        "--split-by",
        metavar="FILTER",
        type=lambda name: name.replace("-", "_"),
        help="one search per value of this filter; its column says which value found a person",
    )


def add_filters(command: argparse.ArgumentParser) -> None:
    """Define an option for each filter, and one for a saved search."""
    command.add_argument("--filters", type=Path, metavar="FILE", help="a saved search")
    groups = {
        group: command.add_argument_group(f"filters: {group}") for group in spec.FILTER_GROUPS
    }
    for known in spec.FILTERS:
        _add_filter(groups[known.group], known)


def _add_filter(group: Any, known: spec.Filter) -> None:
    option = f"--{known.name.replace('_', '-')}"
    note = ", ".join(known.suggestions) if len(known.suggestions) <= 14 else known.note
    text = (note or known.note or None) and (note or known.note).replace("%", "%%")
    if known.type == "boolean":
        group.add_argument(option, action=argparse.BooleanOptionalAction, help=text)
    elif known.type == "array":
        group.add_argument(option, nargs="+", action="extend", metavar="VALUE", help=text)
    else:
        group.add_argument(option, metavar="TEXT", help=text)


def filters_of(options: argparse.Namespace) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the saved filters, and those that were typed."""
    saved = of.load_filters(options.filters) if options.filters else None
    return saved, {known.name: getattr(options, known.name) for known in spec.FILTERS}


def add_sandbox(command: argparse.ArgumentParser) -> None:
    """Define --sandbox."""
    command.add_argument("--sandbox", action="store_true", help="use the embedded service")


def connected(options: argparse.Namespace) -> Client:
    """Connect to the service, or to the embedded one."""
    return of.connect(SANDBOX if options.sandbox else None)
