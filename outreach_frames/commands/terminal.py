"""Adapt messages, printing and signals to a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from outreach_frames import spec
from outreach_frames.common.text import printable

_SIGNALS: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_OPTIONS: Final = "|".join(spec.FILTERS_BY_NAME) + (
    "|name|status|created_by_user_id|created_by_user_email|email_provider|user_email|limit"
    "|page_size|email|emails|profnet_url|overrides|data|leads_distribution|mailboxes|chunk_size"
    "|journal|refresh|resume|encoding|sheet_name|per_company|split_by|domain|company_id|company_profnet_url"
    "|date|folder|sequence|lead_list_id"
)
_COMMANDS: Final = {
    **{f"{name}_people": name for name in ("search", "export", "snapshot")},
    **{name: name for name in ("sequences", "mailboxes", "forget")},
    **{"find_people": "find-people", "filters": "search --help"},
    "explain_search": "search --count without one of the filters",
}
# An argument, with a value that is written in another way in a shell.
_ARGUMENT: Final = re.compile(
    rf"(?<![\w.?&/-])({_OPTIONS})=(None|True|False|\[[^\]]*\]|\{{[^}}]*\}}|(?=[\s,;.]|$))?"
)
_SUBJECT: Final = rf"^({_OPTIONS})(?= (?:takes|is blank|is an empty|has no effect)\b)"
_PAIR: Final = re.compile(r"['\"](\w+)['\"]: (True|'[^']*'|\"[^\"]*\")")
_CALL: Final = re.compile(rf"\b(Call )?(?:of\.)?({'|'.join(_COMMANDS)})\(\)")
# Phrases of Python and their replacements.
_PHRASES: Final = (
    (r"\bNone for all\b", "limit=None"),
    (r"the exception's \.partial holds them", "--out FILE keeps them"),
    (r'\bCall of\.connect\("https[^)]*\), or set\b', "Set"),
    (r'\bof\.connect\("sandbox"\)', "--sandbox"),
    (r"\b(?:api_key|base_url) or (?=OUTREACH_)", ""),
    (r"\bbase_url\b", "OUTREACH_BASE_URL"),
    (r"\bsequence_id=", "sequence="),
    (r"\bwithout dry_run\b", "without --dry-run"),
    (r"\b(the|that|every) call\b", r"\1 command"),
    (r"\buse search_people\(\.\.\.\)\.outreach\.to_excel\(path\)",
        "run outreach-frames search --all --out FILE.xlsx"),
    (r"\bRows with outcomes: report\..*",
        "--results FOLDER writes each row with its outcome to a file."),
    (r"\bThe people: \..*", "As files: --out FILE, and --accounts FILE for the companies."),
    (r"\bThe tables: \..*", "As files: --out FILE."),
    (r", or call report\.retry_unknown\(\)| \(of\.last_report\(\) has it\)", ""),
    (r"; all are in the frame's \.attrs\[\"errors\"\]", ""),
    (r", or connect with (?:a longer max_wait|cache=path[^.]*)", ""),
    (r" of max_wait=\S+ remain\b", " of waiting remain"),
)  # fmt: skip
# What a shell does not have, outside of quotes.
_PYTHON_ONLY: Final = re.compile(
    r"\bof\.\w|=(?:None|True|False)\b|\w\(\)|\bclient=|\.(?:attrs|loc)\b|\b(?:df|frame|report)\.\w"
)
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_SENTENCE_END: Final = re.compile(r"(?<=[.?!]) (?=[A-Z])")


@contextlib.contextmanager
def escaping_unencodable(stream: Any) -> Iterator[None]:
    """Print characters that a stream's encoding lacks as Python escapes."""
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    saved = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors=saved)


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, except those ignored, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    saved = {number: one for number, one in handlers.items() if one not in {signal.SIG_IGN, None}}
    for number in saved:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    # Not by raising SIGINT, which background processes ignore.
    raise KeyboardInterrupt


def print_result(result: object) -> None:
    """Print a result in the terms of the command line."""
    print(printable(in_shell_terms(str(result)), keep="\n"))


def print_if_open(text: str) -> None:
    """Print a text; if the terminal is closed, discard this and all later output."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end


def in_shell_terms(text: str, *, has_all: bool = True) -> str:
    """Replace Python arguments and calls in a message with command-line options and commands.

    >>> in_shell_terms("20 of 400 people were read. Pass limit=None to read all.")
    '20 of 400 people were read. Pass --all to read all.'
    >>> in_shell_terms("status='activ' is unknown.")
    "--status 'activ' is unknown."
    """
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    text = _ARGUMENT.sub(_option_text, re.sub(_SUBJECT, r"\1=", text))
    if has_all:
        text = text.replace("no --limit", "--all")
    return _CALL.sub(_command_text, text)


def _option_text(argument: re.Match[str]) -> str:
    """Return an option and its value, such as --data first_name='First Name'."""
    name, value = argument[1].replace("_", "-"), argument[2]
    if value is None:
        return f"--{name} "
    if value == "None":
        return f"no --{name}"
    if value == "False":
        return f"--no-{name}"
    words = value.removeprefix("True").strip("[]'\"").replace("...", "VALUE VALUE")
    if value.startswith("{"):
        pairs = _PAIR.findall(value)
        words = " ".join(key if text == "True" else f"{key}={text}" for key, text in pairs)
    return f"--{name} {words}".rstrip()


def _command_text(call: re.Match[str]) -> str:
    return f"{'Run ' if call[1] else ''}outreach-frames {_COMMANDS[call[2]]}"


def message_in_shell_terms(text: str, *, has_all: bool = True) -> str:
    """Return an error or warning in the terms of the command line.

    Advice of which nothing but Python is left is dropped: a later sentence, never the first one.
    `has_all` is whether the command has the option --all.

    >>> message_in_shell_terms("The frame has no index. Call df.reset_index().")
    'The table has no index.'
    """
    shown = re.sub(r"\b([Tt])he frame\b", r"\1he table", in_shell_terms(text, has_all=has_all))
    lines = []
    for line in shown.split("\n"):
        first, *others = _SENTENCE_END.split(line)
        kept = [one for one in others if not _PYTHON_ONLY.search(_QUOTED.sub("", one))]
        lines.append(" ".join([first, *kept]))
    return "\n".join(lines)
