"""Define commands, and build their options from the signatures and docstrings of functions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from inspect import Parameter, getdoc, signature
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
from outreach_frames.commands.terminal import READS_ALL, SENTENCE_END, in_shell_terms
from outreach_frames.common.arguments import suggestion
from outreach_frames.common.atomic_files import check_suffix
from outreach_frames.errors import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_NOT_ALL_ADDED: Final = 4

AddOption = Callable[[argparse.ArgumentParser], object]

_CONNECTION: Final = (
    f"The service's address is read from {BASE_URL_VARIABLE}, the account's token from "
    f"{API_KEY_VARIABLE}, or both from a profile that `outreach-frames login` stored. "
    "--sandbox uses the embedded service instead, without an account and with invented data."
)
_FILTERS_NOTE: Final = (
    "A person must match every filter, with at least one of its values. Quote values that contain "
    "spaces."
)
_NO_OPTIONS: Final = frozenset(
    {"client", "dtype_backend", "faults", "filters", "network_name", "progress", "proxies", "ramp"}
    | {"verify"} | spec.FILTERS_BY_NAME.keys()
)  # fmt: skip


# The value of --no-email and the like, which pass None.
_OFF: Final = object()


def _filter_name(option_name: str) -> str:
    """Return the filter's name for an option's name: `person-titles` becomes `person_titles`."""
    return option_name.replace("-", "_")


# Names of values in the help, by type; other values are named after their option's last word.
_VALUE_NAMES: Final = {"Hashable": "COLUMN", "ListOfText": "VALUE", "int": "N", "float": "N"}
# Settings of `add_argument` for parameters that are written or described differently in a shell.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "send_again": {
        "metavar": "STATUS",
        "help": "skips of the service, such as recently_contacted: people whose recorded outcome "
        "is one of these are sent again",
    },
    "by": {"metavar": "FILTER", "type": _filter_name},
    "columns": {"help": "only these columns, in this order, separated by spaces or commas"},
    "data": {
        "metavar": "FIELD=COLUMN",
        "help": 'fields for the sequence\'s texts, such as first_name="First Name"',
    },
    "mailboxes": {"metavar": "EMAIL"},
    "require": {"metavar": "FIELD"},
    "sep": {
        "type": lambda text: "\t" if text in {"tab", r"\t"} else text,
        "help": "the separator of a CSV file, by default as detected (, ; | or tab)",
    },
    "split_by": {"metavar": "FILTER", "type": _filter_name},
}


class Command(NamedTuple):
    """A command: its functions, whose parameters become options, and its other options.

    Functions are named relative to the package, and imported only if the command is used. Without
    `run`, the command calls its function. `arguments` are parameters that are passed without an
    option's name; `without` are parameters that have no option, or one in `options`.
    """

    name: str
    help: str
    run: Callable[[argparse.Namespace], int | None] | None = None
    functions: Sequence[str] = ()
    arguments: Sequence[str] = ()
    without: Sequence[str] = ()
    options: Sequence[AddOption] = ()
    description: str = ""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's description and options to its parser."""
        parser.description = self.description
        for add in self.options:
            add(parser)
        functions = [resolve_name(f"outreach_frames{name}") for name in self.functions]
        for function in functions:
            self._add_parameters(parser, function)
        names = _names(parser)
        parser.description = _in_help(parser.description, names)
        for action in parser._actions:
            action.help = action.help and _in_help(action.help, names)
        parser.set_defaults(run=self.run or partial(call, functions[0]), names=names)

    def _add_parameters(
        self, parser: argparse.ArgumentParser, function: Callable[..., object]
    ) -> None:
        parameters = signature(function).parameters
        description, documented = _sections(str(getdoc(function)))
        parser.description = parser.description or " ".join(description.split())
        help_texts = _help_texts(documented)
        for name, parameter in parameters.items():
            if name in self.without or name in _NO_OPTIONS:
                continue
            is_argument = name in self.arguments
            # The command itself passes other parameters without a default, such as frames.
            if is_argument or parameter.default is not Parameter.empty:
                settings = _settings(parameter, help_texts.get(name, ""), is_argument=is_argument)
                parser.add_argument(name if is_argument else _option_name(name), **settings)
            is_set = parameter.default not in {None, Parameter.empty}
            has_all = name in READS_ALL and ALL in self.options
            if is_set and parameter.annotation.endswith("| None") and not has_all:
                off, help_text = _option_name(f"no_{name}"), f"switch off {_option_name(name)}"
                parser.add_argument(
                    off, dest=name, action="store_const", const=_OFF, help=help_text
                )
        if "client" in parameters and "client" not in self.without:
            add_service(parser)
        if "fields" in parameters:
            _add_filters(parser)


def _sections(docstring: str) -> tuple[str, str]:
    """Return a docstring's description and its section on parameters."""
    description, *sections = re.split(r"\n+(\w+)\n-{3,}\n", docstring)
    return description, dict(zip(sections[::2], sections[1::2], strict=True)).get("Parameters", "")


def _help_texts(documented: str) -> dict[str, str]:
    """Return the help of each parameter: the first sentence of its description."""
    texts: dict[str, str] = {}
    for entry in filter(None, re.split(r"\n+(?=\S)", documented)):
        head, _, description = entry.partition("\n")
        name, _, types = head.partition(" : ")
        first, *_ = SENTENCE_END.split(" ".join(description.split()))
        text = first[0].lower() + first[1:].rstrip(".").replace("%", "%%")
        if types.startswith("{"):
            text += f" ({', '.join(re.findall(r'[a-z_]+', types))})"
        texts[name] = text
    return texts


def _names(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the parser's options and positional arguments by their names in Python."""
    names: dict[str, str] = {}
    for action in parser._actions:
        long = [text for text in action.option_strings if text.startswith("--")]
        names |= {text[2:].replace("-", "_"): text for text in long}
        names.setdefault(action.dest, long[0] if long else action.dest.upper())
    return names


def _in_help(text: str, names: Mapping[str, str]) -> str:
    """Return a description or help text in the terms of the command line."""
    shown = re.sub(r"`(\w+)`", lambda name: names.get(name[1], name[0]), text.replace("``", ""))
    return in_shell_terms(shown, names)


def _settings(parameter: Parameter, help_text: str, *, is_argument: bool) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a parameter, from its type and default."""
    default = parameter.default
    settings: dict[str, Any] = {"help": help_text}
    if isinstance(default, int | str) and not isinstance(default, bool):
        settings = {"default": default, "help": f"{help_text} (default: {default})"}
    types = parameter.annotation
    if types.startswith("bool"):
        action = "store_true" if default is False else argparse.BooleanOptionalAction
        return settings | {"action": action}
    if not is_argument:
        last_word = parameter.name.rpartition("_")[2].upper()
        settings["metavar"] = _VALUE_NAMES.get(types.partition(" ")[0], last_word)
    for kind in (int, float):
        if kind.__name__ in re.split(r"\W+", types) and "str" not in types:
            settings["type"] = kind
    if types == "Path":
        settings["type"] = Path
    if re.search("Sequence|Iterable|Container|ListOf", types):
        settings |= {"nargs": "*"} if is_argument else {"nargs": "+", "action": "extend"}
    elif is_argument and default is not Parameter.empty:
        settings["nargs"] = "?"
    return settings | _SETTINGS.get(parameter.name, {})


def option(*names: str, **settings: Any) -> AddOption:
    """Return a function that adds an option to a parser, with the arguments of `add_argument`."""
    return lambda parser: parser.add_argument(*names, **settings)


ALL: Final = option("--all", action="store_true", help="read all matching people")


def _option_name(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def output_path(suffixes: Sequence[str], what: str) -> Callable[[str], Path]:
    """Return an argparse type for output files that checks the file's ending."""

    def path(text: str) -> Path:
        try:
            check_suffix(text, suffixes, what)
        except InvalidInputError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return Path(text)

    return path


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
    parameters = signature(of.search_people).parameters
    for known in spec.FILTERS:
        values = ", ".join(known.suggestions) if len(known.suggestions) <= 14 else ""
        help_text = (values or known.note).replace("%", "%%")
        settings = _settings(parameters[known.name], help_text, is_argument=False)
        groups[known.group].add_argument(_option_name(known.name), **settings)


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
        given |= dict.fromkeys(("limit", "per_company"))
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


def reject_repeats(parser: argparse.ArgumentParser) -> None:
    """Reject repeated options of a parser, except options that collect values."""
    parser.register("action", None, _StoreOnce)


class CommandParser(argparse.ArgumentParser):
    """A parser of one command that suggests the nearest option for an unknown one."""

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse arguments; exit if an option is unknown."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            close = suggestion(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{close}")
        return options, unknown
