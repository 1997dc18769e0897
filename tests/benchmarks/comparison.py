"""One line of the table: what is measured, ours, the other way, and the goal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """Two ways to the same result, measured in one run.

    `ours` and `other` are in `unit`; `goal` is the ratio to reach: other / ours where less is
    better than the other (`times faster`), ours / other where a cost is bounded (`at most`).
    `floor` is what cannot be avoided, in the same unit, and `floor_is` what that is.
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
        """How many times faster ours is, or how many times as much it needs."""
        return self.ours / self.other if self.at_most else self.other / self.ours

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "ratio": round(self.ratio, 2), "reached": self.reached}


def as_markdown(comparisons: Iterable[Comparison]) -> str:
    """Return the table as `docs/explanation/benchmarks.md` shows it."""
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
    """Write a figure with its unit."""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
