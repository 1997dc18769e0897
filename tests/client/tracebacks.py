"""Everything that a traceback may show."""

from __future__ import annotations

import traceback

from IPython.core.ultratb import VerboseTB


def everything_shown(error: BaseException) -> str:
    """Write an exception as the tools do that show local variables, but for the test's own."""
    assert error.__traceback__ is not None
    error = error.with_traceback(error.__traceback__.tb_next)
    plain = traceback.TracebackException.from_exception(error, capture_locals=True)
    # Colours take twice as long, and would part what is looked for.
    shown = VerboseTB("nocolor").text(type(error), error, error.__traceback__)
    return "".join(plain.format()) + str(shown)
