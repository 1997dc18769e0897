"""Commands in a terminal: their messages, printing, and how a command ends."""

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

_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_OPTIONS: Final = (
    *spec.FILTERS_BY_NAME,
    *("name", "status", "created_by_user_id", "created_by_user_email", "email_provider"),
    *("user_email", "limit", "page_size", "email", "profnet_url", "overrides", "data"),
    *("leads_distribution", "mailboxes", "chunk_size", "journal", "refresh"),
    *("per_company", "split_by", "domain", "company_id", "company_profnet_url"),
)
# The first that fits a place in a text stands for it.
_WORDS: Final = (
    (r"\blimit=None\b", "--all"),
    (r"\bresume=False\b", "--no-resume"),
    (r"the exception's \.partial holds them", "--out FILE keeps them"),
    (r"\b(?:of\.)?(sequences|mailboxes)\(\)", r"outreach-frames \1"),
    (r"\bsnapshot_people\(\)", "outreach-frames snapshot"),
    (r"\boverrides=\{'(\w+)': True\}", r"--overrides \1"),
    (r"\bEach row with its outcome: report\.frame; as files: report\.to_csv\(folder\);[^.]*\.notes",
        "--results FOLDER writes each row with its outcome to a file"),
    (r"The people: \.people; each account with its status: \.accounts;.*\.to_excel\(path\)",
        "As files: --out FILE for the people, --accounts FILE for the companies"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=True\b", r"--\1"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=(?=['\"\d-])", r"--\1 "),
    (rf"^({'|'.join(spec.FILTERS_BY_NAME)})(?= (?:takes|is)\b)", r"--\1"),
)  # fmt: skip


@contextlib.contextmanager
def printing_everything(stream: Any) -> Iterator[None]:
    """Let a stream show characters that its encoding lacks as Python escapes."""
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    before = stream.errors
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(errors=before)


@contextlib.contextmanager
def terminating_like_ctrl_c() -> Iterator[None]:
    """Treat SIGTERM, and the end of the terminal, as Ctrl-C, after which there still is a report.

    A signal that is ignored, as under nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: one for number, one in handlers.items() if one not in {signal.SIG_IGN, None}}
    for number in before:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    # Not by raising SIGINT, which a process that was started in the background ignores.
    raise KeyboardInterrupt


def show(result: object) -> None:
    """Print a result as one reads it in a shell."""
    print(printable(in_shell(str(result)), keep="\n"))


def say(text: str) -> None:
    """Print what is also said elsewhere, so that a terminal that is gone is not a failure."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end


def in_shell(text: str) -> str:
    """Return a message with the shell's options in place of Python's arguments.

    >>> in_shell("20 of 400 people were read. Pass limit=None to read all.")
    '20 of 400 people were read. Pass --all to read all.'
    >>> in_shell("status='activ' is none of active, draft.")
    "--status 'activ' is none of active, draft."
    """
    for pattern, words in _WORDS:
        text = re.sub(
            pattern,
            lambda found, words=words: _with_dashes(found.expand(words)),  # type: ignore[misc]
            text,
        )
    return text


def _with_dashes(words: str) -> str:
    """Write an option's name with dashes, and its value as it is.

    >>> _with_dashes("--person_titles x_y")
    '--person-titles x_y'
    """
    name, blank, rest = words.partition(" ")
    return (name.replace("_", "-") if name.startswith("--") else name) + blank + rest
