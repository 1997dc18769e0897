"""Commands in a terminal: options, printing, and how a command ends."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


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


def say(text: str) -> None:
    """Print what is also said elsewhere, so that a terminal that is gone is not a failure."""
    try:
        print(text, flush=True)
    except OSError:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end


class _Once(argparse.Action):
    """Take a value, and refuse a second one: which one counts would be unclear."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's own signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        given: frozenset[str] = getattr(namespace, "given", frozenset())
        if option_string is not None and self.dest in given:
            raise argparse.ArgumentError(self, "given twice; give it once")
        namespace.given = given | {self.dest}
        setattr(namespace, self.dest, values)


class CommandParser(argparse.ArgumentParser):
    """A command's options; each may be given once, but for those that collect values."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.register("action", None, _Once)
