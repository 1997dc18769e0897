"""How two commits' figures are compared; the figures themselves are never asserted."""

from __future__ import annotations

from tests.benchmarks.against import as_markdown, changes_of
from tests.benchmarks.comparison import Comparison


def _row(ours: float, *, what: str = "search", other: float = 2.0) -> Comparison:
    return Comparison(what, "a loop", ours, other, goal=1)


def test_a_row_is_compared_with_its_own_in_every_run() -> None:
    """The ratio is the median of the runs' ratios, of rows of the same name, in any order."""
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


def test_a_row_that_one_side_lacks_is_left_out() -> None:
    """A measurement that only one commit has gives no ratio."""
    assert changes_of([([_row(1.0, what="old")], [_row(1.0, what="new")])]) == []
