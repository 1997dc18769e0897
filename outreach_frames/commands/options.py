"""Define commands, whose options have the types and defaults of functions' parameters."""

from __future__ import annotations

import argparse
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.client.connect import (
    API_KEY_VARIABLE,
    BASE_URL_VARIABLE,
    PROFILE_VARIABLE,
    SANDBOX,
)
from outreach_frames.client.options import CA_BUNDLE_VARIABLE, PROXY_VARIABLE
from outreach_frames.common.arguments import ListOfText, suggestion
from outreach_frames.common.atomic_files import check_suffix
from outreach_frames.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

# The path `-`, which stands for standard output.
STDOUT: Final = Path("-")
EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_ALL_ADDED: Final = 4

AddOption = Callable[[argparse.ArgumentParser], object]

_CONNECTION: Final = (
    f"The service's address is read from {BASE_URL_VARIABLE}, the account's token from "
    f"{API_KEY_VARIABLE}, or both from a profile that `outreach-frames login` stored. "
    f"{PROXY_VARIABLE} takes a proxy's address, and {CA_BUNDLE_VARIABLE} a file of certificate "
    "authorities. --sandbox uses the embedded service instead, without an account and with "
    "invented data."
)
_FILTERS_NOTE: Final = (
    "A person must match every filter, with at least one of its values. Quote values that contain "
    "spaces."
)
# The parameters for which --all passes None.
_READS_ALL: Final = ("limit", "per_company")
# The value of --no-email and the like, which pass None.
_OFF: Final = object()


def _filter_name(option_name: str) -> str:
    """Return the filter's name for an option's name: `person-titles` becomes `person_titles`."""
    return option_name.replace("-", "_")


def _output_path(
    suffixes: Sequence[str], what: str, *, or_stdout: bool = False
) -> Callable[[str], Path]:
    """Return an argparse type for output files that checks the file's ending."""

    def path(text: str) -> Path:
        if or_stdout and text == "-":
            return STDOUT
        try:
            check_suffix(text, suffixes, what)
        except InvalidInputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return Path(text)

    return path


_TABLES: Final = (".csv", ".parquet", ".xlsx", ".tsv")
# Settings of `add_argument` that do not follow from a parameter's type and default.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "--accounts FILE": {"type": _output_path(_TABLES, "tables")},
    "--by FILTER": {"type": _filter_name},
    "--format FORMAT": {"choices": ("table", "csv", "json")},
    "--out FILE": {"type": _output_path(_TABLES, "tables", or_stdout=True)},
    "--out WORKBOOK": {"type": _output_path((".xlsx", ""), "a workbook, or CSV files to a folder")},
    "--overrides NAME": {"choices": spec.OVERRIDE_NAMES},
    "--results FOLDER": {"type": Path},
    "--sep SEP": {"type": lambda text: "\t" if text in {"tab", r"\t"} else text},
    "--sequence ID": {"dest": "sequence_id", "required": True},
    "--split-by FILTER": {"type": _filter_name},
}
_LISTS: Final = {Iterable, ListOfText, Mapping, Sequence}
# The help of parameters that several functions have.
_SHARED: Final = {
    "--columns COLUMN": "only these columns, in this order, separated by spaces or commas",
    "--email-provider PROVIDER": f"one of {', '.join(spec.EMAIL_PROVIDERS)}",
    "--encoding ENCODING": "the encoding of a CSV file that is not UTF-8, such as cp1252 or utf-16",
    "--headcount KIND": "headcount columns of companies: all, only those by department, or none",
    "--page-size N": f"people per request, 1 to {spec.MAX_SEARCH_PAGE_SIZE}; by default automatic",
    "--profile PROFILE": "the profile's name",
    "--refresh": "ask the service even if the cache has a fresh response",
    "--sep SEP": "the separator of a CSV file, by default as detected (, ; | or tab)",
    "--sheet-name NAME": "the name of a workbook's sheet; by default, the first visible sheet",
    "--split-by FILTER": "a filter whose values are searched one by one, in the given order",
    "--status STATUS": f"one of {', '.join(spec.MAILBOX_STATUSES)}",
    "--user-email EMAIL": "the email address of the mailbox's user",
}


class Command(NamedTuple):
    """A command: the functions that it calls, and its options with their help.

    Functions are named relative to the package, and imported only if the command is used. Without
    `run`, the command calls its function. `options` has the help by usage, such as `--limit N`,
    `--refresh` or `path`. An option that is named like a parameter of a function has its type and
    default; `--no-NAME` passes None for it. Without its help here or in `_SHARED`, a parameter has
    no option. `others` add options with other settings. `once` rejects repeated options, except
    those that collect values. `offline` commands never connect.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace], int | None] | None = None
    functions: Sequence[str] = ()
    options: Mapping[str, str] = {}
    others: Sequence[AddOption] = ()
    details: str = ""
    once: bool = False
    offline: bool = False

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's description and options to its parser."""
        parser.description = f"{self.help[0].upper()}{self.help[1:]}. {self.details}".rstrip()
        if self.once:
            parser.register("action", None, _StoreOnce)
        functions = [resolve_name(f"outreach_frames{name}") for name in self.functions]
        hints: dict[str, Any] = {}
        parameters: dict[str, Parameter] = {}
        for function in functions:
            hints |= typing.get_type_hints(function)
            parameters |= signature(function).parameters
        for usage, help_text in {**_SHARED, **self.options}.items():
            name = _python_name(usage)
            if name in parameters or usage in self.options:
                default = parameters[name].default if name in parameters else False
                _add_option(parser, usage, help_text, hints.get(name), default)
        for add in self.others:
            add(parser)
        if "client" in parameters and not self.offline:
            add_service(parser)
        if "fields" in parameters:
            _add_filters(parser)
        parser.set_defaults(run=self.run or partial(call, functions[0]), names=_names(parser))


def _python_name(usage: str) -> str:
    """Return the name in Python: `--page-size N` becomes `page_size`."""
    return usage.partition(" ")[0].removeprefix("--").replace("-", "_")


def _names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the terms of the parser: an option or position for each argument in Python."""
    names: dict[str, str] = {}
    for action in parser._actions:
        long = [text for text in action.option_strings if text.startswith("--")]
        if action.const is _OFF:
            names |= {f"{action.dest}=None": text for text in long}
        else:
            names |= {_python_name(text): text for text in long}
            names.setdefault(action.dest, long[0] if long else action.dest.upper())
    if "all" in names:
        names |= dict.fromkeys([f"{name}=None" for name in _READS_ALL], names["all"])
    return names


def _add_option(
    parser: argparse._ActionsContainer, usage: str, help_text: str, hint: Any, default: Any
) -> None:
    """Add an option or positional argument for a parameter with this type and default."""
    name, _, value = usage.partition(" ")
    is_option = name.startswith("--")
    settings: dict[str, Any] = {"help": help_text}
    if name.startswith("--no-"):
        dest = _python_name(name).removeprefix("no_")
        settings |= {"dest": dest, "action": "store_const", "const": _OFF}
    elif is_option and not value:
        settings["action"] = "store_true" if default is False else argparse.BooleanOptionalAction
    else:
        types = {hint, *typing.get_args(hint)}
        if is_option:
            settings["metavar"] = value
        if str not in types:
            settings["type"] = next((kind for kind in (int, float, Path) if kind in types), None)
        if not _LISTS.isdisjoint(typing.get_origin(kind) or kind for kind in types):
            settings |= {"nargs": "+", "action": "extend"} if is_option else {"nargs": "*"}
        elif isinstance(default, int | str) and default is not False:
            settings |= {"default": default, "help": f"{help_text} (default: {default})"}
        elif not is_option and default is None:
            settings["nargs"] = "?"
    parser.add_argument(name, **settings | _SETTINGS.get(usage, {}))


def option(*names: str, **settings: Any) -> AddOption:
    """Return a function that adds an option to a parser, with the arguments of `add_argument`."""
    return lambda parser: parser.add_argument(*names, **settings)


def add_service(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the service."""
    services = parser.add_mutually_exclusive_group()
    services.add_argument("--sandbox", action="store_true", help="use the embedded service")
    services.add_argument(
        "--profile", metavar="NAME", help=f"a stored profile (that of {PROFILE_VARIABLE})"
    )
    add_rate(parser)
    parser.epilog = _CONNECTION


def add_rate(parser: argparse.ArgumentParser) -> None:
    """Add the option that spaces requests."""
    parser.add_argument(
        "--requests-per-minute",
        type=float,
        metavar="N",
        help="space the requests evenly, for a service that allows no bursts",
    )


def _add_filters(parser: argparse.ArgumentParser) -> None:
    """Add one option per filter, and an option for a saved search."""
    parser.add_argument("--filters", type=Path, metavar="FILE", help="a saved search")
    parser.description = f"{parser.description} {_FILTERS_NOTE}"
    parser.usage = f"{parser.format_usage().removeprefix('usage: ').rstrip()} [FILTERS]"
    # An abbreviated option might match a filter.
    parser.allow_abbrev = False
    groups = {group: parser.add_argument_group(f"filters: {group}") for group in spec.FILTER_GROUPS}
    hints = typing.get_type_hints(of.PeopleFilters)
    for known in spec.FILTERS:
        values = ", ".join(known.suggestions) if len(known.suggestions) <= 14 else ""
        help_text = (values or known.note).replace("%", "%%")
        value = "" if known.type == "boolean" else " VALUE"
        usage = f"--{known.name.replace('_', '-')}{value}"
        if usage.partition(" ")[0] in parser._option_string_actions:
            continue  # find-people takes this filter from a column
        _add_option(groups[known.group], usage, help_text, hints[known.name], None)


def call(function: Callable[..., T], options: argparse.Namespace, **others: Any) -> T:
    """Call a function with arguments taken from the options, and connect if it takes a client."""
    takes_client = "client" in signature(function).parameters
    with connected(options) if takes_client and "sandbox" in options else nullcontext():
        return function(**(arguments_of(function, options) | others))


def arguments_of(function: Callable[..., object], options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of a function that the options give."""
    names = signature(function).parameters
    given = {name: value for name, value in vars(options).items() if value not in (None, [])}
    given = {name: None if value is _OFF else value for name, value in given.items()}
    if "columns" in given:
        given["columns"] = [*filter(None, ",".join(given["columns"]).split(","))]
    if given.get("quiet"):
        given["progress"] = False
    if given.get("all"):
        given |= dict.fromkeys(_READS_ALL)
    known = {*names, *(spec.FILTERS_BY_NAME if "fields" in names else ())}
    return {name: value for name, value in given.items() if name in known}


def connected(options: argparse.Namespace) -> Client:
    """Connect to the service or, with --sandbox, to the embedded service."""
    return of.connect(
        SANDBOX if options.sandbox else None,
        profile=options.profile,
        requests_per_minute=options.requests_per_minute,
    )


def read_table(options: argparse.Namespace) -> pd.DataFrame:
    """Read the file of a command, with all cells as text."""
    from outreach_frames.files.read import read_as_text  # noqa: PLC0415 - slow to import

    return call(read_as_text, options)


class _StoreOnce(argparse.Action):
    """Store an option's value, and reject the option if it is repeated."""

    def __call__(
        self, _parser: object, options: argparse.Namespace, values: object, name: str | None = None
    ) -> None:
        given: frozenset[str] = getattr(options, "given", frozenset())
        if name is not None and self.dest in given:
            raise argparse.ArgumentError(self, "given twice; pass it once")
        options.given = given | {self.dest}
        setattr(options, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """A parser of one command that rejects unknown options, naming the nearest, and conflicts."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; exit if an option is unknown, or --format conflicts with --out."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            close = suggestion(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{close}")
        form, out = (getattr(options, name, None) for name in ("format", "out"))
        if form and out and (out != STDOUT or form == "table"):
            self.error(f"--format {form} and --out {out} conflict. Pass one of them.")
        return options, unknown
