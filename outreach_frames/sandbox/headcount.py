"""How a company's employees are spread over departments and job functions.

The rule: the 14 departments add up exactly to the company's employees, `senior_leadership` being
one of them, and the job functions of a department add up exactly to that department.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from outreach_frames import spec
from outreach_frames.sandbox.vocabulary import Industry

LEADERSHIP: Final = "senior_leadership"
FOUNDER: Final = "founder"


def shares(total: int, weights: Sequence[float], rng: Random) -> list[int]:
    """Split a count by weights into whole parts that add up to it exactly.

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
    # Rounding may leave the very last one over; it belongs where there is any weight.
    parts[max(range(len(weights)), key=weights.__getitem__)] += total - before
    return parts


def headcounts(
    employees: int, industry: Industry, *, has_founder: bool, rng: Random
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Return `department_headcount` and `job_function_headcount` of a company.

    Parameters
    ----------
    employees : int
        All employees, at least one; one of them always leads.
    industry : Industry
        Its shares, varied a little.
    has_founder : bool
        Whether a founder can still be at work.
    rng : Random
        The source of the variation.
    """
    weights = [industry.departments[name] * (0.6 + 0.8 * rng.random()) for name in spec.DEPARTMENTS]
    departments = dict(zip(spec.DEPARTMENTS, shares(employees - 1, weights, rng), strict=True))
    departments[LEADERSHIP] += 1
    functions = {
        department: dict(
            zip(
                names,
                shares(
                    departments[department], _weights(industry, department, has_founder, rng), rng
                ),
                strict=True,
            )
        )
        for department, names in spec.JOB_FUNCTIONS.items()
    }
    return departments, functions


def _weights(industry: Industry, department: str, has_founder: bool, rng: Random) -> list[float]:
    """Return the weights of a department's job functions, varied a little."""
    weights = [weight * (0.4 + 1.2 * rng.random()) for weight in industry.functions[department]]
    if department == LEADERSHIP:
        weights[spec.JOB_FUNCTIONS[LEADERSHIP].index(FOUNDER)] *= 2.0 if has_founder else 0.0
    return weights
