"""Write a message's arguments and functions in the terms of its reader: Python's or a shell's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from outreach_frames.common.text import quoted

# A command's options by argument, and commands by function. Worker threads write messages too, so
# this belongs to the process, not to a context.
_shell: Final[dict[str, str]] = {}


@contextmanager
def shell_terms(terms: Mapping[str, str]) -> Iterator[None]:
    """Write messages with these options and commands; with none, in Python's terms.

    `terms` has an option for each argument, such as `limit`, and optionally for an argument without
    a value, such as `limit=None`. It has a command for each function, such as `sequences()`.
    """
    saved = dict(_shell)
    _replace(terms)
    try:
        yield
    finally:
        _replace(saved)


def _replace(terms: Mapping[str, str]) -> None:
    _shell.clear()
    _shell.update(terms)


def name(argument_name: str) -> str:
    """Return an argument's name, or its option.

    >>> with shell_terms({"page_size": "--page-size"}):
    ...     name("page_size"), name("workers")
    ('--page-size', 'workers')
    """
    return _shell.get(argument_name, argument_name)


def argument(name: str, value: object = ...) -> str:
    """Return an argument with its value, or as `name=` without one, or its option.

    >>> argument("limit", None), argument("emails"), argument("data", {"a": "B"})
    ('limit=None', 'emails=', "data={'a': 'B'}")
    >>> with shell_terms({"limit": "--limit", "limit=None": "--all", "data": "--data"}):
    ...     argument("limit", 5), argument("limit", None), argument("data", {"a": "B"})
    ('--limit 5', '--all', "--data a='B'")
    """
    option = _shell.get(name)
    if option is None:
        return f"{name}={_in_python(value)}"
    if value is None:
        return _shell.get(f"{name}=None", f"no {option}")
    if value is False:
        return f"--no-{option.removeprefix('--')}"
    return f"{option} {_in_shell(value)}".rstrip()


def _in_python(value: object) -> str:
    if value is ...:
        return ""
    if isinstance(value, dict):
        entries = (f"{quoted(key)}: {quoted(entry)}" for key, entry in value.items())
        return f"{{{', '.join(entries)}}}"
    return quoted(value)


def _in_shell(value: object) -> str:
    if value is ... or value is True:
        return ""
    if isinstance(value, dict):
        pairs = ((key, _in_shell(entry)) for key, entry in value.items())
        names = ((shlex.quote(str(key)), entry) for key, entry in pairs)
        return " ".join(f"{key}={entry}" if entry else key for key, entry in names)
    if isinstance(value, list):
        return " ".join(map(quoted, value))
    return quoted(value)


def function(name: str) -> str:
    """Return a function's call, or the command that calls the function.

    >>> with shell_terms({"sequences()": "outreach-frames sequences"}):
    ...     function("sequences"), function("columns")
    ('outreach-frames sequences', 'of.columns()')
    """
    return _shell.get(f"{name}()", f"of.{name}()")


def call(name: str) -> str:
    """Return the advice to call a function, or to run its command.

    >>> call("filters")
    'Call of.filters()'
    """
    return f"{'Run' if _shell else 'Call'} {function(name)}"


def wording(python: str, *, in_shell: str) -> str:
    """Return the sentence for the reader of messages, where no single sentence suits both."""
    return in_shell if _shell else python
