"""Define commands and their options, and pass options to functions as arguments."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from inspect import Parameter, signature
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import docstring_parser

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import (
    API_KEY_VARIABLE,
    BASE_URL_VARIABLE,
    PROFILE_VARIABLE,
    SANDBOX,
)
from outreach_frames.commands.terminal import in_shell_terms
from outreach_frames.common.atomic_files import check_suffix
from outreach_frames.errors import InvalidInputError

T = TypeVar("T")

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_ALL_ADDED: Final = 4

AddOption = Callable[[argparse.ArgumentParser], object]

CONNECTION: Final = (
    f"The service's address is read from {BASE_URL_VARIABLE}, the account's token from "
    f"{API_KEY_VARIABLE}, or both from a profile that `outreach-frames login` stored. "
    "--sandbox uses the embedded service instead, without an account and with invented data."
)


class Command(NamedTuple):
    """A command's name, help, options and function."""

    name: str
    help: str
    description: str
    options: Sequence[AddOption]
    run: Callable[[argparse.Namespace], int | None]
    usage: str | None = None

    def define(self, commands: Any) -> None:
        """Add the command's parser to the main parser."""
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=self.description,
            usage=self.usage,
            epilog=CONNECTION if SANDBOX_OPTION in self.options else None,
            # An abbreviated option might match a filter.
            allow_abbrev=add_filters not in self.options,
        )
        for add in self.options:
            add(parser)
        parser.set_defaults(run=self.run)


def option(*names: str, **settings: Any) -> AddOption:
    """Return a function that adds an option to a parser, with the arguments of `add_argument`."""
    return lambda parser: parser.add_argument(*names, **settings)


def options_of(
    function: Callable[..., object], *names: str, **changed: dict[str, Any]
) -> tuple[AddOption, ...]:
    """Return options for parameters of a function, with its defaults and its docstring's words.

    Parameters without a default, and those that `changed` gives nargs "?" or "*", are positional.
    """
    parameters = signature(function).parameters
    words = {
        name: one
        for one in docstring_parser.parse(function.__doc__ or "").params
        for name in one.arg_name.split(", ")
    }
    return tuple(
        _option_of(name, words[name], parameters[name].default, changed.get(name, {}))
        for name in names
    )


def _option_of(
    name: str, words: docstring_parser.DocstringParam, default: object, changed: dict[str, Any]
) -> AddOption:
    kind = words.type_name or ""
    text = _first_words(words.description or "")
    is_positional = default is Parameter.empty or changed.get("nargs") in {"?", "*"}
    settings: dict[str, Any] = {"help": text}
    if kind == "bool":
        settings |= {"action": argparse.BooleanOptionalAction if default else "store_true"}
        settings |= {"default": default}
    else:
        is_number = kind.startswith(("int", "list of int"))
        is_list = bool(re.search(r"\b(list|iterable)\b", kind))
        word = name if is_positional else name.rpartition("_")[2]
        word = "N" if is_number else "column" if text.startswith("the column") else word
        settings["metavar"] = word.upper().removesuffix("S" if is_list else "")
        settings |= {"type": int} if is_number else {"type": Path} if "Path" in kind else {}
        settings |= {"nargs": "+", "action": "extend"} if is_list else {}
        if not is_positional and default is not None:
            settings |= {"default": default, "help": f"{text} (default: {default})"}
    if is_positional:
        settings.pop("action", None)
    return option(name if is_positional else _option_name(name), **settings | changed)


def _first_words(text: str) -> str:
    """Return the first clause of a description in the terms of the command line.

    >>> _first_words("The day of each email, such as [0, 3, 7]; see `plan`.")
    'the day of each email, such as 0 3 7'
    """
    first = re.split(r"[.;](?:\s|$)", text, maxsplit=1)[0]
    plain = re.sub(r"\[([^\]]*)\]", lambda listed: listed[1].replace(",", ""), first)
    text = " ".join(in_shell_terms(plain).replace("`", "").split()).replace("%", "%%")
    return text[:1].lower() + text[1:]


def first_sentence(function: Callable[..., object]) -> str:
    """Return the first sentence of a function's docstring."""
    return str(function.__doc__).strip().partition("\n\n")[0]


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def output_path(suffixes: Sequence[str], what: str) -> Callable[[str], Path]:
    """Return an argparse type for output files that checks the file's ending."""

    def path(text: str) -> Path:
        try:
            check_suffix(text, suffixes, what)
        except InvalidInputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return Path(text)

    return path


def _add_service(command: argparse.ArgumentParser) -> None:
    """Add the options that choose the service."""
    services = command.add_mutually_exclusive_group()
    services.add_argument("--sandbox", action="store_true", help="use the embedded service")
    services.add_argument(
        "--profile", metavar="NAME", help=f"a stored profile (that of {PROFILE_VARIABLE})"
    )


def filter_name(option_name: str) -> str:
    """Return the filter's name for an option's name: `person-titles` becomes `person_titles`."""
    return option_name.replace("-", "_")


SANDBOX_OPTION: Final = _add_service
SPLIT_BY: Final = option(
    "--split-by",
    metavar="FILTER",
    type=filter_name,
    help="one search per value of this filter; a column shows the value that found each person",
)
COLUMNS: Final = option(
    "--columns",
    nargs="+",
    action="extend",
    metavar="COLUMN",
    type=lambda text: text.split(","),
    help="only these columns, in this order, separated by spaces or commas",
)
REFRESH: Final = option("--refresh", action="store_true", help="ask the service, not the cache")
READING: Final = options_of(of.read_prospects, "sheet_name", "encoding")
TABLE_FILE: Final = (
    option(
        "file",
        type=Path,
        help="a .csv file or .xlsx workbook with a header row, or a .parquet file",
    ),
    *READING,
)


def add_filters(command: argparse.ArgumentParser) -> None:
    """Add one option per filter, and an option for a saved search."""
    command.add_argument("--filters", type=Path, metavar="FILE", help="a saved search")
    groups = {
        group: command.add_argument_group(f"filters: {group}") for group in spec.FILTER_GROUPS
    }
    for known in spec.FILTERS:
        _add_filter(groups[known.group], known)


def _add_filter(group: Any, known: spec.Filter) -> None:
    option = _option_name(known.name)
    note = ", ".join(known.suggestions) if len(known.suggestions) <= 14 else known.note
    text = (note or known.note or None) and (note or known.note).replace("%", "%%")
    if known.type == "boolean":
        group.add_argument(option, action=argparse.BooleanOptionalAction, help=text)
    elif known.type == "array":
        group.add_argument(option, nargs="+", action="extend", metavar="VALUE", help=text)
    else:
        group.add_argument(option, metavar="TEXT", help=text)


def call(function: Callable[..., T], options: argparse.Namespace, **others: Any) -> T:
    """Call a function with arguments taken from the options, and connect if it takes a client."""
    names = signature(function).parameters
    given: dict[str, Any] = {"progress": False if getattr(options, "quiet", False) else None}
    given |= vars(options) | others
    if given.get("columns") is not None:
        given["columns"] = [*filter(None, chain.from_iterable(given["columns"]))]
    chosen = {name: value for name, value in given.items() if name in names}
    if "fields" in names:
        chosen |= {known.name: given[known.name] for known in spec.FILTERS}
    with connected(options) if "sandbox" in options and "client" in names else nullcontext():
        return function(**chosen)


def connected(options: argparse.Namespace) -> Client:
    """Connect to the service or, with --sandbox, to the embedded service."""
    return of.connect(SANDBOX if options.sandbox else None, profile=options.profile)


class _StoreOnce(argparse.Action):
    """Store an option's value, and reject the option if it is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's own signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        given: frozenset[str] = getattr(namespace, "given", frozenset())
        if option_string is not None and self.dest in given:
            raise argparse.ArgumentError(self, "given twice; pass it once")
        namespace.given = given | {self.dest}
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """A parser that rejects repeated options, except options that collect values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.register("action", None, _StoreOnce)
