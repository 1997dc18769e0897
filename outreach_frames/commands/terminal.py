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
    *("per_company", "split_by", "domain", "company_id", "company_profnet_url"),
)
# Patterns in messages and their replacements, applied in this order.
_SHELL_TERMS: Final = (
    (r"\blimit=None\b", "--all"),
    (r"\bresume=False\b", "--no-resume"),
    (r"the exception's \.partial holds them", "--out FILE keeps them"),
    (r"\b(?:of\.)?(sequences|mailboxes)\(\)", r"outreach-frames \1"),
    (r"\bsnapshot_people\(\)", "outreach-frames snapshot"),
    (r"\boverrides=\{'(\w+)': True\}", r"--overrides \1"),
    (r"\bRows with outcomes: report\.frame; as files: report\.to_csv\(folder\);[^.]*\.notes",
        "--results FOLDER writes each row with its outcome to a file"),
    (r"The people: \.people; each account with its status: \.accounts;.*\.to_excel\(path\)",
        "As files: --out FILE for the people, --accounts FILE for the companies"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=True\b", r"--\1"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=(?=['\"\d-])", r"--\1 "),
    (rf"^({'|'.join(spec.FILTERS_BY_NAME)})(?= (?:takes|is)\b)", r"--\1"),
)  # fmt: skip


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


def _dash_name(words: str) -> str:
    """Replace underscores in an option's name with dashes, but not in its value.

    >>> _dash_name("--person_titles x_y")
    '--person-titles x_y'
    """
    name, blank, rest = words.partition(" ")
    return (name.replace("_", "-") if name.startswith("--") else name) + blank + rest
