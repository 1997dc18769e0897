"""Text of tracebacks with local variables."""

from __future__ import annotations

import traceback

from IPython.core.ultratb import VerboseTB


def everything_shown(error: BaseException) -> str:
    """Format an error with local variables in several tools, without the test's own frame."""
    assert error.__traceback__ is not None
    error = error.with_traceback(error.__traceback__.tb_next)
    plain = traceback.TracebackException.from_exception(error, capture_locals=True)
    # Colours take twice as long, and would split the text that tests search.
    shown = VerboseTB("nocolor").text(type(error), error, error.__traceback__)
    return "".join(plain.format()) + str(shown)
