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
_OPTIONS: Final = (
    *spec.FILTERS_BY_NAME,
    *("name", "status", "created_by_user_id", "created_by_user_email", "email_provider"),
    *("user_email", "limit", "page_size", "email", "profnet_url", "overrides", "data"),
    *("leads_distribution", "mailboxes", "chunk_size", "journal", "refresh", "encoding"),
    *("per_company", "split_by", "domain", "company_id", "company_profnet_url", "date", "folder"),
)
_COMMANDS: Final = {
    **{name: name.removesuffix("_people") for name in ("search_people", "export_people")},
    **{"snapshot_people": "snapshot", "find_people": "find-people"},
    **{name: name for name in ("sequences", "mailboxes", "forget")},
    "filters": "search --help",
}
_OPTION: Final = rf"(?<![\w.?&/-])({'|'.join(_OPTIONS)})="
# Patterns in messages and their replacements, applied in this order.
_SHELL_TERMS: Final = (
    (r"\blimit=None\b|\bNone for all\b", "--all"),
    (r"\bresume=False\b", "--no-resume"),
    (r"the exception's \.partial holds them", "--out FILE keeps them"),
    (r'\bCall of\.connect\("https[^)]*\), or set\b', "Set"),
    (r'\bof\.connect\("sandbox"\)', "--sandbox"),
    (r"\bapi_key or (?=OUTREACH_)", ""),
    (r"\bbase_url\b", "OUTREACH_BASE_URL"),
    (r"\bsequence_id=", "--sequence "),
    (r"\bwithout dry_run\b", "without --dry-run"),
    (r"\b(the|that|every) call\b", r"\1 command"),
    (r"\bframes of search_people\(\), or files of\b", "files of outreach-frames search or"),
    (r"\bCall of\.explain_search\(\) with the same filters to see",
        "outreach-frames search --count without one of the filters shows"),
    *((rf"\b(?:of\.)?{name}\(\)", f"outreach-frames {words}") for name, words in _COMMANDS.items()),
    (r"\bCall (?=outreach-frames )", "Run "),
    (r"\boverrides=\{'(\w+)': True\}", r"--overrides \1"),
    (r"\bRows with outcomes: report\.frame; as files: report\.to_csv\(folder\);[^.]*\.notes",
        "--results FOLDER writes each row with its outcome to a file"),
    (r"The people: \.people; each account with its status: \.accounts;.*\.to_excel\(path\)",
        "As files: --out FILE for the people, --accounts FILE for the companies"),
    (r"The tables: \.appeared.*", "As files: --out FILE."),
    (r", or call report\.retry_unknown\(\)| \(of\.last_report\(\) has it\)", ""),
    (r"; all are in the frame's \.attrs\[\"errors\"\]", ""),
    (r"\bSet one of them to None\b", "Pass two different columns"),
    (r", or connect with (?:a longer max_wait|cache=path[^.]*)", ""),
    (r" of max_wait=\S+ remain\b", " of waiting remain"),
    (r"\bdata=\{(?=['\"])(.*)\}", r"--data \1"),
    (_OPTION + r"True\b", r"--\1"),
    (_OPTION + r"\[\.\.\.\]", r"--\1 VALUE VALUE"),
    (_OPTION + r"\[['\"]([^'\"]*)['\"]\]", r"--\1 \2"),
    (_OPTION + r"(?=['\"\d-])", r"--\1 "),
    (_OPTION + r"(?=[\s,;.]|$)", r"--\1"),
    (rf"^(date|{'|'.join(spec.FILTERS_BY_NAME)})(?= (?:takes|is)\b)", r"--\1"),
    (rf"^({'|'.join(_OPTIONS)})(?= (?:is blank|has no effect)\b)", r"--\1"),
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


def in_shell_terms(text: str) -> str:
    """Replace Python arguments and calls in a message with command-line options and commands.

    >>> in_shell_terms("20 of 400 people were read. Pass limit=None to read all.")
    '20 of 400 people were read. Pass --all to read all.'
    >>> in_shell_terms("status='activ' is unknown.")
    "--status 'activ' is unknown."
    """
    for pattern, words in _SHELL_TERMS:
        text = re.sub(
            pattern,
            lambda found, words=words: _dash_name(found.expand(words)),  # type: ignore[misc]
            text,
        )
    return text


def message_in_shell_terms(text: str, *, has_all: bool = True) -> str:
    """Return an error or warning in the terms of the command line.

    Advice of which nothing but Python is left is dropped: a later sentence, never the first one.
    `has_all` is whether the command has the option --all.

    >>> message_in_shell_terms("The frame has no index. Call df.reset_index().")
    'The table has no index.'
    """
    if not has_all:
        text = re.sub(r"\blimit=None\b|\bNone for all\b", "no --limit", text)
    lines = []
    for line in re.sub(r"\b([Tt])he frame\b", r"\1he table", in_shell_terms(text)).split("\n"):
        first, *others = _SENTENCE_END.split(line)
        kept = [one for one in others if not _PYTHON_ONLY.search(_QUOTED.sub("", one))]
        lines.append(" ".join([first, *kept]))
    return "\n".join(lines)


def _dash_name(words: str) -> str:
    """Replace underscores in an option's name with dashes, but not in its value.

    >>> _dash_name("--person_titles x_y")
    '--person-titles x_y'
    """
    name, blank, rest = words.partition(" ")
    if name == "--data":
        rest = re.sub(r"(?:, )?['\"](\w+)['\"]: (?=['\"])", r" \1=", rest).strip()
    return (name.replace("_", "-") if name.startswith("--") else name) + blank + rest
