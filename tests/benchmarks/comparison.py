"""One row of the benchmark table: the measurement, both figures, and the goal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """The measurements of this package and an alternative in one run.

    `ours`, `other` and `floor` are in `unit`. `goal` is the minimum of other / ours, or with
    `at_most` the maximum of ours / other. `floor` is the cost that no implementation can avoid,
    and `floor_is` describes it.
    """

    what: str
    against: str
    ours: float
    other: float
    goal: float
    unit: str = "s"
    at_most: bool = False
    floor: float | None = None
    floor_is: str = ""

    @property
    def ratio(self) -> float:
        """The speed-up of this package, or with `at_most` its cost relative to the alternative."""
        return self.ours / self.other if self.at_most else self.other / self.ours

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal


def as_markdown(comparisons: Iterable[Comparison]) -> str:
    """Return the table of `docs/explanation/benchmarks.md`."""
    lines = [
        "| what | compared with | this package | alternative | ratio | goal | floor |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for one in comparisons:
        sign = "≤ " if one.at_most else "≥ "
        floor = "" if one.floor is None else f"{amount(one.floor, one.unit)} {one.floor_is}"
        lines.append(
            f"| {one.what} | {one.against} | {amount(one.ours, one.unit)} | "
            f"{amount(one.other, one.unit)} | {one.ratio:.2f}{'' if one.reached else ' (missed)'} "
            f"| {sign}{one.goal:g} | {floor} |"
        )
    return "\n".join(lines)


def amount(value: float, unit: str) -> str:
    """Format a figure with its unit."""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
