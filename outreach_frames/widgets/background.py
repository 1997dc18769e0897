"""Long work of a widget in a thread, and its news on the kernel's own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from outreach_frames.common.cancellation import CancellationToken, bind_thread

T = TypeVar("T")


class Task:
    """One piece of work under way. `stop` breaks off its requests and waits."""

    def __init__(self) -> None:
        self.stop = CancellationToken()

    @property
    def stopped(self) -> bool:
        """Whether somebody wished that it ends."""
        return self.stop.is_set


class Background:
    """Where a widget's long work is done, so that its buttons go on working.

    All that changes the widget runs on the loop that it was made on, one after the other. Where
    there is none, as in a plain script, it runs where it arises.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()

    @property
    def over(self) -> bool:
        """Whether the loop has ended, as in a kernel that is going down."""
        return self._loop is not None and not self._loop.is_running()

    def deliver(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, from whatever thread."""
        if self._loop is None:
            function(*arguments)
        else:
            # A loop that is closed belongs to a kernel that is going down.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

    def on_loop(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function at once where this is the loop's own thread, else as soon as it can."""
        # What comes from the page may come in another thread: Lab talks to widgets in a subshell.
        if self._loop is None or threading.current_thread() is self._thread:
            function(*arguments)
        else:
            self.deliver(function, *arguments)

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function on the loop, some seconds from now, from whatever thread."""
        timer = threading.Timer(seconds, self.deliver, [function])
        timer.daemon = True
        timer.start()

    def start(
        self,
        work: Callable[[Task], T],
        then: Callable[[Future[T]], object],
        news: Callable[[str], object],
    ) -> Task:
        """Do some work in a thread of its own.

        Parameters
        ----------
        work : callable
            Called with its task in the thread; may say what happens with `deliver`.
        then : callable
            Called on the loop with the work's future once it is done.
        news : callable
            Called on the loop with why it takes longer, such as a wait that the service asked for.

        Returns
        -------
        Task
            Its `stop` breaks off requests and waits.
        """
        task = Task()

        def notify(words: str) -> None:
            self.deliver(news, words)

        executor = ThreadPoolExecutor(
            1, "outreach_frames_widget", initializer=bind_thread, initargs=(task.stop, notify)
        )
        future = executor.submit(work, task)
        future.add_done_callback(lambda done: self.deliver(then, done))
        executor.shutdown(wait=False)
        return task
