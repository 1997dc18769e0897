"""The peak memory of a search is close to the size of its frame."""

from __future__ import annotations

import pytest

from tests.benchmarks.memory import PEOPLE, peak_and_frame


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_large_search_needs_little_more_than_its_frame() -> None:
    """The peak memory of a search for 100,000 people is less than three times the frame's size."""
    peak, frame = peak_and_frame(PEOPLE)
    assert peak < 3 * frame
