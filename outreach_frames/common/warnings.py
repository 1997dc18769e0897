"""Warnings that point at the analyst's code."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from outreach_frames.common.text import printable
from outreach_frames.errors import OutreachWarning, bounded

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the current thread's warnings instead of issuing them.

    >>> with collect_warnings() as warnings_seen:
    ...     warn("something to know")
    >>> warnings_seen
    ['something to know']
    """
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


class DeferredWarnings:
    """Issue the warnings of a `with` block at its end; warnings that are errors are dropped."""

    def __enter__(self) -> None:
        self._collected = collect_warnings()
        self._messages = self._collected.__enter__()

    def __exit__(self, *_raised: object) -> None:
        self._collected.__exit__(None, None, None)
        for message in self._messages:
            # A warning that is raised as an error must not lose the block's result.
            with suppress(Exception):
                warn(message)


def are_collected() -> bool:
    """Return whether the current thread's warnings are collected."""
    return _collected.get() is not None


def warn(message: str) -> None:
    """Issue a warning at the line that called the package; escape control characters."""
    message = printable(bounded(message), keep="\n")
    messages = _collected.get()
    if messages is not None:
        messages.append(message)
        return
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, OutreachWarning, stacklevel=level + 1)
