"""Many runs with one journal, of changing frames, at a service that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.leads.histories.play import play, shrunk
from tests.leads.histories.story import make_story

pytestmark = pytest.mark.long

STORIES = 4
MORE_STORIES = 5_000


def groups(first: int, stories: int, size: int) -> list[range]:
    """Split numbers of stories into groups."""
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
    """Nobody is sent twice, and every outcome is proven by the requests and replies."""
    for seed in seeds:
        story = make_story(seed)
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        if broken := play(story, folder):
            shorter = shrunk(story, broken[0].rule, folder)
            pytest.fail(f"Story {seed}: {broken[0]}\nIt takes no more than this:\n{shorter}")
