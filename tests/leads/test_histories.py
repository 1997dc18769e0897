"""Random runs with one journal and changing frames, on a service that fails at random."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.leads.histories.play import play
from tests.leads.histories.story import make_story

pytestmark = pytest.mark.long

STORIES = 40
MORE_STORIES = 5_000


def groups(first: int, stories: int, size: int) -> list[range]:
    """Split the seeds of stories into ranges of this size."""
    return [range(start, start + size) for start in range(first, first + stories, size)]


@pytest.mark.parametrize(
    "seeds",
    [
        *groups(0, STORIES, 4),
        *(pytest.param(more, marks=pytest.mark.slow) for more in groups(STORIES, MORE_STORIES, 50)),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}",
)
def test_histories(seeds: range, tmp_path: Path) -> None:
    """No person is sent twice, and requests and replies prove each outcome."""
    for seed in seeds:
        story = make_story(seed)
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        if broken := play(story, folder):
            pytest.fail(f"Story {seed}: {broken[0]}\n{story}")
