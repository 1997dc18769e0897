"""Warnings that point at the analyst's own line."""

from __future__ import annotations

import inspect
import os
import warnings
from pathlib import Path

from outreach_frames.errors import OutreachWarning

_PACKAGE = f"{Path(__file__).parent}{os.sep}"


def warn(message: str) -> None:
    """Warn with the location of the call that entered the package."""
    frame = inspect.currentframe()
    level = 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, OutreachWarning, stacklevel=level + 1)
