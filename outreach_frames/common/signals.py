"""Ctrl-C and similar signals, held back where work must not end halfway."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

_NAMES = ("SIGINT", "SIGTERM", "SIGBREAK")


class HeldSignals:
    """A context manager that records the signals to end instead of obeying them.

    What a signal would have done is done at the end, but for Ctrl-C, which is taken as obeyed. A
    signal that ends the process at once, or is ignored, is left alone. So is every signal outside
    of the main thread, where none arrives.

    Attributes
    ----------
    count : int
        How many arrived so far.
    """

    def __init__(self) -> None:
        self.count: int = 0
        self._received: set[int] = set()
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in _NAMES:
                number = getattr(signal, name, None)
                handler = None if number is None else signal.getsignal(number)
                if number is not None and callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_raised: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number in self._received - {signal.SIGINT}:
            signal.raise_signal(number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._received.add(number)
        self.count += 1
