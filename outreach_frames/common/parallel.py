"""Many requests at a time, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import TypeVar

from outreach_frames.common.cancellation import (
    CancellationToken,
    bind_thread,
    current_cancellation,
    current_status,
)

T = TypeVar("T")
R = TypeVar("R")

# How long an interrupted run waits for a worker that does not end.
_GRACE_SECONDS = 1.0
# Short enough for Ctrl-C on systems where a longer wait cannot be interrupted.
_SLICE_SECONDS = 0.5


def ordered_map(function: Callable[[T], R], items: Iterable[T], *, workers: int) -> Generator[R]:
    """Yield ``function(item)`` for every item, computed in threads, in the order of the items.

    Parameters
    ----------
    function : callable
        Called with one item in a worker thread. Requests of a `Client` and their waits end as soon
        as the run is over.
    items : iterable
        Read lazily, at most twice `workers` ahead of what was yielded.
    workers : int
        Threads, at least 1.

    Yields
    ------
    object
        The results. An error is raised where its result would have come, and ends the run; so do
        closing the iterator and Ctrl-C. What has not begun is then never begun.

    Examples
    --------
    >>> list(ordered_map(str.upper, "abc", workers=2))
    ['A', 'B', 'C']
    """
    cancellation, outer = CancellationToken(), current_cancellation.get()
    executor = ThreadPoolExecutor(
        workers,
        "outreach_frames",
        initializer=bind_thread,
        initargs=(cancellation, current_status.get()),
    )
    running: deque[Future[R]] = deque()
    try:
        with nullcontext() if outer is None else outer.calling(cancellation.set):
            for item in items:
                running.append(executor.submit(function, item))
                if len(running) >= 2 * workers:
                    yield _result(running[0])
                    running.popleft()
            while running:
                yield _result(running[0])
                running.popleft()
    finally:
        cancellation.set()
        executor.shutdown(wait=False, cancel_futures=True)
        wait([future for future in running if not future.cancelled()], timeout=_GRACE_SECONDS)


def _result(future: Future[R]) -> R:
    while not wait([future], timeout=_SLICE_SECONDS).done:
        pass
    return future.result()
