"""Run a widget's long work in threads and deliver results on the kernel's event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from outreach_frames.common.cancellation import CancellationToken, StatusListener, bind_thread
from outreach_frames.common.warnings import collect_warnings

T = TypeVar("T")
# A result and its warnings.
Done = Future[tuple[T, list[str]]]


class Background:
    """Run a widget's long work in threads, and all changes of the widget on the event loop."""

    # Without an event loop, as in a script, each call runs in the calling thread.

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    @property
    def over(self) -> bool:
        """Whether the loop has ended, for example because the kernel is shutting down."""
        return self._loop is not None and not self._loop.is_running()

    def deliver(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, from any thread."""
        if self._loop is None:
            function(*arguments)
        else:
            # Ignore a closed loop: the kernel is shutting down.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

    def on_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop: at once in the loop's thread, later in other threads."""
        # Messages from the page may arrive in another thread: JupyterLab uses a subshell.
        if threading.current_thread() is self._thread:
            function(*arguments)
        else:
            self.deliver(function, *arguments)

    def start(
        self,
        cancellation: CancellationToken,
        work: Callable[[], T],
        then: Callable[[Done[T]], object],
        show_status: StatusListener,
    ) -> None:
        """Do work in a new thread; call `then` and `show_status` on the loop."""
        # `show_status` gets the progress, or the reason for a delay, and "" when the delay is over.

        def in_thread() -> tuple[T, list[str]]:
            bind_thread(cancellation, partial(self.deliver, show_status))
            with collect_warnings() as warnings:
                return work(), warnings

        executor = ThreadPoolExecutor(1, "outreach_frames_widget")
        executor.submit(in_thread).add_done_callback(partial(self.deliver, then))
        executor.shutdown(wait=False)
