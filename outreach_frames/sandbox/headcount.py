"""Split a company's employees exactly into departments, and departments into job functions."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from outreach_frames import spec
from outreach_frames.sandbox.vocabulary import Industry

LEADERSHIP: Final = "senior_leadership"
FOUNDER: Final = "founder"


def shares(total: int, weights: Sequence[float], rng: Random) -> list[int]:
    """Split a count by weights into integers that sum to it.

    >>> sum(shares(101, [1.0, 2.5, 0.0], Random(0)))
    101
    """
    step = total / sum(weights)
    reached, before, parts = rng.random(), 0, []
    for weight in weights:
        reached += weight * step
        upto = min(int(reached), total)
        parts.append(upto - before)
        before = upto
    # Rounding may leave a remainder of one; add it to the part with the largest weight.
    parts[max(range(len(weights)), key=weights.__getitem__)] += total - before
    return parts


def headcounts(
    employees: int, industry: Industry, *, has_founder: bool, rng: Random
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return a company's `department_headcount` and `job_function_headcount`."""
    weights = [industry.departments[name] * (0.6 + 0.8 * rng.random()) for name in spec.DEPARTMENTS]
    departments = dict(zip(spec.DEPARTMENTS, shares(employees - 1, weights, rng), strict=True))
    departments[LEADERSHIP] += 1  # every company has a leader
    functions = {}
    for department, names in spec.JOB_FUNCTIONS.items():
        weights = _weights(industry, department, has_founder, rng)
        counts = shares(departments[department], weights, rng)
        functions[department] = dict(zip(names, counts, strict=True))
    return departments, functions


def _weights(industry: Industry, department: str, has_founder: bool, rng: Random) -> list[float]:
    weights = [weight * (0.4 + 1.2 * rng.random()) for weight in industry.functions[department]]
    if department == LEADERSHIP:
        weights[spec.JOB_FUNCTIONS[LEADERSHIP].index(FOUNDER)] *= 2.0 if has_founder else 0.0
    return weights
