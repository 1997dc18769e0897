"""Threads give the same results as a loop, in the same order, and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.common.cancellation import current_cancellation
from outreach_frames.common.parallel import ordered_map
from tests.threads import join_workers


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 6))
def test_results_come_in_the_order_of_the_items(pauses: list[int], workers: int) -> None:
    """Results keep the order of the items, even if an earlier item takes longer."""

    def work(item: tuple[int, int]) -> int:
        time.sleep(item[1] / 2000)
        return item[0]

    items = list(enumerate(pauses))
    assert list(ordered_map(work, items, workers=workers)) == [number for number, _ in items]


def test_work_runs_in_parallel_up_to_the_number_of_workers() -> None:
    """As many items as there are workers run at once, and no more."""
    lock, now, most = threading.Lock(), 0, 0
    together = threading.Barrier(3, timeout=10)

    def work(_: int) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait()
        with lock:
            now -= 1

    assert len(list(ordered_map(work, range(12), workers=3))) == 12
    assert most == 3


def test_items_are_taken_lazily() -> None:
    """An item is not started before its result may be requested."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = ordered_map(str, items(), workers=2)
    assert taken == []
    assert [next(results), next(results)] == ["0", "1"]
    assert len(taken) <= 6
    results.close()


def test_an_error_comes_in_order_and_ends_the_run() -> None:
    """Results before an error are returned; items not yet started are never started."""
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 3:
            raise KeyError(number)
        return number

    results = ordered_map(work, range(1000), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        next(results)
    assert len(begun) < 12


@pytest.mark.parametrize("end", ["close", "error"])
def test_work_in_progress_learns_of_the_end(end: str) -> None:
    """Workers learn that the run has ended, and their threads end before it returns."""
    heard = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            return number
        if number == 1 and end == "error":
            raise KeyError(number)
        stop = current_cancellation.get()
        assert stop is not None
        with stop.calling(heard.set):
            heard.wait()
        return number

    results = ordered_map(work, range(1000), workers=4)
    assert next(results) == 0
    if end == "close":
        results.close()
    else:
        with pytest.raises(KeyError):
            next(results)
    assert heard.is_set()
    join_workers()


def test_unresponsive_workers_are_not_waited_for() -> None:
    """A run ends although its workers hang, and they start nothing more."""
    release = threading.Event()
    begun: list[int] = []
    ended: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number > 0:
            release.wait(60)
            ended.append(number)
        return number

    results = ordered_map(work, range(1000), workers=2)
    assert next(results) == 0
    results.close()
    assert ended == []
    release.set()
    join_workers()
    assert set(begun) <= {0, 1, 2}
