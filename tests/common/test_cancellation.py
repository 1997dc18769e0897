"""Cancellation tokens call back only while a callback is registered."""

from __future__ import annotations

import pytest

from outreach_frames.common.cancellation import CancellationToken


def test_a_token_calls_back_only_inside_the_block() -> None:
    """A callback runs on cancellation, at once if the token is cancelled, and never afterwards."""
    heard: list[str] = []
    token = CancellationToken()
    with token.calling(lambda: heard.append("before")):
        pass
    with pytest.raises(ZeroDivisionError), token.calling(lambda: heard.append("failed")):
        raise ZeroDivisionError
    with token.calling(lambda: heard.append("during")):
        token.set()
    with token.calling(lambda: heard.append("late")):
        assert heard == ["during", "late"]
    assert heard == ["during", "late"]
