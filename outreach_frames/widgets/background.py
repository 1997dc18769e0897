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

T = TypeVar("T")


class Task:
    """A piece of work under way."""

    def __init__(self) -> None:
        self._token = CancellationToken()

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._token.is_set

    def cancel(self) -> None:
        """Abort its requests and waits."""
        self._token.set()

    def bind_thread(self, notify: Callable[[str], None]) -> None:
        """Make the current thread work for this task, and say by `notify` why it takes longer."""
        bind_thread(self._token, notify)


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
        if self._loop is None or threading.current_thread() is self._thread:
            function(*arguments)
        else:
            self.deliver(function, *arguments)

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function on the loop, some seconds from now, from any thread."""
        timer = threading.Timer(seconds, self.deliver, [function])
        timer.daemon = True
        timer.start()

    def start(
        self,
        work: Callable[[Task], T],
        then: Callable[[Future[T]], object],
        show_status: Callable[[str], object],
    ) -> Task:
        """Do some work in a thread of its own.

        Parameters
        ----------
        work : callable
            Called with its task in the thread; may report progress with `deliver`.
        then : callable
            Called on the loop with the work's future once it is done.
        show_status : callable
            Called on the loop with why the work takes longer, such as a wait that the service asked
            for, and with "" when that is over.

        Returns
        -------
        Task
            Can be cancelled.
        """
        task = Task()
        executor = ThreadPoolExecutor(
            1,
            "outreach_frames_widget",
            initializer=task.bind_thread,
            initargs=(partial(self.deliver, show_status),),
        )
        future = executor.submit(work, task)
        future.add_done_callback(partial(self.deliver, then))
        executor.shutdown(wait=False)
        return task
