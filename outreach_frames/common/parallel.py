"""Run tasks in parallel and return their results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Final, TypeVar

from outreach_frames.common.cancellation import (
    CancellationToken,
    bind_thread,
    current_cancellation,
    current_status,
)

T = TypeVar("T")
R = TypeVar("R")

# Threads that convert columns.
CPU_THREADS: Final = min(2, os.cpu_count() or 1)
# Seconds that an interrupted run waits for its workers.
_GRACE_SECONDS = 1.0
# Longer waits cannot be interrupted by Ctrl-C on some systems.
_SLICE_SECONDS = 0.5


def ordered_map(function: Callable[[T], R], items: Iterable[T], *, workers: int) -> Generator[R]:
    """Yield ``function(item)`` in the order of the items, computed in worker threads.

    A failed item raises its error in place of a result. The error, Ctrl-C or closing the iterator
    ends the run: requests and waits of a `Client` are aborted, and pending items are not started.

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
                if len(running) >= 2 * workers:  # read items lazily
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
