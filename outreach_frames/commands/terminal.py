"""Adapt messages, printing and signals to a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final, NoReturn, TextIO

import pandas as pd

from outreach_frames.common.card import Card, as_text
from outreach_frames.common.text import printable
from outreach_frames.errors import OutreachError
from outreach_frames.tables.value_text import column_texts

_SIGNALS: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_MAX_ROWS: Final = 40
# Maximum width of a cell, and the width to which text may be cut.
_MAX_CELL, _MIN_CELL = 46, 10
# The width for files and pipes, whose lines have no limit.
_ANY_WIDTH: Final = 1_000_000


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP like Ctrl-C, unless they are ignored, as under nohup."""
    is_main = threading.current_thread() is threading.main_thread()
    saved = {
        number: signal.signal(number, _interrupt)
        for number in _SIGNALS
        if is_main and signal.getsignal(number) not in {signal.SIG_IGN, None}
    }
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> NoReturn:
    # Raising SIGINT would not work, because background processes ignore it.
    raise KeyboardInterrupt


def flush_output() -> None:
    """Write the output, or discard it if its reader has ended, as in ``| head -1``."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output(sys.stdout)


def _discard_output(stream: TextIO) -> None:
    """Discard a stream's remaining output, so that no later flush fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def print_card(card: Card, stream: TextIO | None = None) -> None:
    """Print a card without advice, which is for Python, with lines that fit the terminal."""
    facts = [replace(fact, advice="") for fact in card.facts]
    print_message(as_text(replace(card, facts=facts, advice="")), stream)


def print_message(text: str, stream: TextIO | None = None) -> None:
    """Print a text with lines that fit the terminal."""
    print_text(fit_lines(text), stream)


def print_note(text: str) -> None:
    """Print a text that is not data to standard error, unless it is closed."""
    if sys.stderr is not None:
        print_text(text, sys.stderr)


def print_text(text: str, stream: TextIO | None = None) -> None:
    """Print a text with its control characters escaped, by default to standard output."""
    _write(printable(f"{text}\n", keep="\n"), sys.stdout if stream is None else stream)


def print_data(text: str) -> None:
    """Print CSV or JSON unchanged in UTF-8; in a terminal, escape control characters."""
    if sys.stdout is None or sys.stdout.isatty():
        print_text(text.rstrip("\n"))
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    _write(text, sys.stdout)


def _write(text: str, stream: TextIO) -> None:
    """Write a text; ignore a closed pipe, but raise OutreachError if the output is lost."""
    try:
        print(text, end="", file=stream, flush=True)
    except OSError as error:
        _discard_output(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise OutreachError(f"The output cannot be written: {error}.") from error


def fit_lines(text: str) -> str:
    """Break long lines between words; indent the continuations to the line's last column."""
    width = _terminal_width()
    lines = []
    for line in text.split("\n"):
        starts = [gap.end() for gap in re.finditer(r"(?:^|\S)  +(?=\S)", line)]
        indent = " " * min(max(starts, default=0), width // 2)
        wrapper = textwrap.TextWrapper(
            width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        lines += wrapper.wrap(line) if len(line) > width else [line]
    return "\n".join(lines)


def format_table(
    frame: pd.DataFrame, max_rows: int = _MAX_ROWS, *, prefer_first: bool = False
) -> str:
    """Format the first columns that fit the terminal; ids and numbers are never shortened.

    With `prefer_first`, only the last column that fits is shortened.
    """
    half = max_rows // 2
    is_cut = len(frame) > max_rows
    shown = pd.concat([frame.head(half), frame.tail(half)]) if is_cut else frame
    are_numbers = [pd.api.types.is_numeric_dtype(dtype) for dtype in shown.dtypes]
    columns: list[list[str]] = []
    limits: list[tuple[int, int]] = []
    for position, name in enumerate(map(str, shown.columns)):
        texts = column_texts(shown.iloc[:, position]).texts.to_pylist()
        cells = [printable(name), *(printable(text or "") for text in texts)]
        most = min(max(map(_width, cells)), _MAX_CELL)
        least = min(most, _MIN_CELL)
        if are_numbers[position] or name == "id" or name.endswith("_id"):
            least = most
        elif prefer_first:
            room = _terminal_width() - sum(width + 2 for width, _ in limits)
            least = min(most, max(room, _width(cells[0])))
        limits.append((least, most))
        columns.append([*cells[: half + 1], "…", *cells[half + 1 :]] if is_cut else cells)
    widths = _column_widths(limits)
    sized = [
        [_fitted(cell, width, to_right=is_number) for cell in cells]
        for cells, width, is_number in zip(columns, widths, are_numbers, strict=False)
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*sized, strict=True))


def _column_widths(limits: Sequence[tuple[int, int]]) -> list[int]:
    """Return the widths of the first columns that fit the terminal; reduce the widest columns."""
    available = _terminal_width()
    totals = accumulate(least + 2 for least, _ in limits)
    shown = limits[: sum(total - 2 <= available for total in totals)]
    for widest in range(_MAX_CELL, 0, -1):
        widths = [max(least, min(most, widest)) for least, most in shown]
        if len(widths) > 1 and sum(widths) + 2 * (len(widths) - 1) <= available:
            return widths
    return [min(most, available) for _, most in limits[:1]]


def _width(text: str) -> int:
    """Return the cells of a terminal that a text takes; wide letters take two."""
    return sum(
        1 + (unicodedata.east_asian_width(letter) in {"F", "W"})
        for letter in text
        if unicodedata.category(letter) not in {"Cf", "Me", "Mn"}
    )


def _fitted(text: str, width: int, *, to_right: bool = False) -> str:
    """Cut a text that is wider than a column, or pad it to the column's width.

    >>> _fitted("陈雨欣", 5), _fitted("7", 3, to_right=True)
    ('陈雨…', '  7')
    """
    if _width(text) > width:
        while _width(text) >= width:
            text = text[:-1]
        text += "…"
    blanks = " " * (width - _width(text))
    return blanks + text if to_right else text + blanks


def _terminal_width() -> int:
    """Return the width that COLUMNS sets, or the terminal's; files and pipes have no limit."""
    return shutil.get_terminal_size((_ANY_WIDTH, 0)).columns
