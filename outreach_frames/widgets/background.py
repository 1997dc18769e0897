"""Long work of a widget in a thread, with its results delivered on the kernel's own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.warnings import collect_warnings

T = TypeVar("T")
# The result of some work, and the warnings that came with it.
Done = Future[tuple[T, list[str]]]


class Background:
    """Does a widget's long work, so that its buttons keep working.

    Everything that changes the widget runs on the loop that it was made on, one call after the
    other. Without a loop, as in a plain script, each call runs in the thread that makes it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    @property
    def over(self) -> bool:
        """Whether the loop has ended, as in a kernel that is shutting down."""
        return self._loop is not None and not self._loop.is_running()

    def deliver(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, from any thread."""
        if self._loop is None:
            function(*arguments)
        else:
            # A closed loop belongs to a kernel that is shutting down.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

    def on_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function at once in the loop's own thread, else as soon as the loop is free."""
        # Messages of the page may come in another thread: Lab talks to widgets in a subshell.
        if threading.current_thread() is self._thread:
            function(*arguments)
        else:
            self.deliver(function, *arguments)

    def start(
        self,
        cancellation: CancellationToken,
        work: Callable[[], T],
        then: Callable[[Done[T]], object],
        show_status: Callable[[str], object],
    ) -> None:
        """Do some work in a thread of its own.

        Parameters
        ----------
        cancellation : CancellationToken
            Aborts the work's requests and waits.
        work : callable
            Called in the thread; may report progress with `deliver`.
        then : callable
            Called on the loop with the future of the work's result and warnings once it is done.
        show_status : callable
            Called on the loop with why the work takes longer, such as a wait that the service asked
            for, and with "" when that is over.
        """

        def in_thread() -> tuple[T, list[str]]:
            bind_thread(cancellation, partial(self.deliver, show_status))
            with collect_warnings() as warnings:
                return work(), warnings

        executor = ThreadPoolExecutor(1, "outreach_frames_widget")
        executor.submit(in_thread).add_done_callback(partial(self.deliver, then))
        executor.shutdown(wait=False)
