"""Helpers for tests that start threads."""

from __future__ import annotations

import threading


def join_workers() -> None:
    """Wait until a run's worker threads have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("outreach_frames"):
            thread.join()
