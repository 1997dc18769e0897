"""Defer Ctrl-C and similar signals while work must not be interrupted."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGBREAK")


class HeldSignals:
    """Count termination signals in a `with` block; at its end, raise all but Ctrl-C again."""

    def __init__(self) -> None:
        self.count: int = 0  # signals received so far
        self._received: set[int] = set()
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in _NAMES:
                number = getattr(signal, name, None)
                handler = None if number is None else signal.getsignal(number)
                # Signals that are ignored or end the process at once keep their effect.
                if number is not None and callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._record)
        return self

    def __exit__(self, *_raised: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number in self._received - {signal.SIGINT}:
            signal.raise_signal(number)

    def _record(self, number: int, _frame: FrameType | None) -> None:
        self._received.add(number)
        self.count += 1
