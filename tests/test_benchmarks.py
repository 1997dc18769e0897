"""Benchmarks of two commits are compared; tests never assert the times themselves."""

from __future__ import annotations

from tests.benchmarks.against import as_markdown, changes_of
from tests.benchmarks.comparison import Comparison


def _row(ours: float, *, what: str = "search", other: float = 2.0) -> Comparison:
    return Comparison(what, "a loop", ours, other, goal=1)


def test_rows_are_compared_by_name() -> None:
    """The ratio is the median over runs of the ratios of rows with the same name."""
    pairs = [
        ([_row(1.0), _row(4.0, what="plan")], [_row(2.0, what="plan"), _row(1.2)]),
        ([_row(10.0), _row(4.0, what="plan")], [_row(2.0, what="plan"), _row(10.0)]),
        ([_row(1.0), _row(4.0, what="plan")], [_row(2.0, what="plan"), _row(1.1, other=3.0)]),
    ]
    plan, search = changes_of(pairs)
    assert (plan.before, plan.after, plan.ratio) == (4.0, 2.0, 0.5)
    assert (search.ratio, search.other_ratio) == (1.1, 1.0)
    assert "1.10 (slower)" in as_markdown([search])
    assert "slower" not in as_markdown([plan])


def test_a_row_of_one_commit_has_no_ratio() -> None:
    """A measurement of only one commit has no ratio."""
    assert changes_of([([_row(1.0, what="old")], [_row(1.0, what="new")])]) == []
