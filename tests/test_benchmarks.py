"""Benchmarks of two commits are compared; tests never assert the times themselves."""

from __future__ import annotations

from tests.benchmarks.against import ratios


def test_rows_are_compared_by_name() -> None:
    """The ratio is the median over runs of the ratios of rows that both commits have."""
    pairs = [
        ({"search": (1.0, 2.0), "old": (1.0, 1.0)}, {"search": (1.2, 2.0), "new": (1.0, 1.0)}),
        ({"search": (10.0, 2.0)}, {"search": (10.0, 2.0)}),
        ({"search": (1.0, 2.0)}, {"search": (1.1, 3.0)}),
    ]
    assert list(ratios(pairs)) == ["| search | 1.10 (slower) | 1.00 |"]
    assert list(ratios([(after, before) for before, after in pairs])) == [
        "| search | 0.91 | 1.00 |"
    ]
