"""A whole campaign: arms, one sequence per arm, and reply rates a month later."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt

import pandas as pd
import pytest

import outreach_frames as of

pytestmark = pytest.mark.long

RATES = {"A": 0.04, "B": 0.08}
SHOWS = {"A": "needs_email", "B": "conditional_email"}


def wilson(happened: int, people: int, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's interval by its formula, because importing statsmodels takes seconds."""
    share, weight = happened / people, z * z / people
    half = sqrt(weight * share * (1 - share) + weight * weight / 4)
    return tuple((share + weight / 2 + side) / (1 + weight) for side in (-half, half))  # type: ignore[return-value]


def covered(
    seed: int, leads: pd.DataFrame, interval: Callable[[int, int], tuple[float, float]]
) -> list[bool]:
    """Return for each arm whether the interval of its reply rate covers the true rate."""
    number = pd.util.hash_pandas_object(f"{seed} " + of.keys.email(leads["email"]), index=False)
    leads = leads.assign(arm=(number % 2).map({0: "A", 1: "B"}))
    found = []
    with of.connect("sandbox", people=1, seed=seed, cache=None) as client:
        reports = {}
        for arm, shows in SHOWS.items():
            sequence_id = client.sandbox.sequence_ids[shows]
            client.sandbox.set_response_rates(sequence_id, reply_rate=RATES[arm])
            reports[arm] = leads[leads["arm"] == arm].outreach.add_to_sequence(sequence_id)
        client.sandbox.advance(days=30)
        for arm, report in reports.items():
            events = report.recent_activity()
            counts = pd.crosstab(events["row"], events["event_type"])
            counts = counts.reindex(report.rows.index, fill_value=0)
            assert (counts["email_sent"] == 1).all()
            replied = int((counts.get("email_replied", pd.Series([0])) > 0).sum())
            low, high = interval(replied, len(counts))
            found.append(low <= RATES[arm] <= high)
    return found


def check_coverage(
    seeds: range, size: int, interval: Callable[[int, int], tuple[float, float]]
) -> None:
    """Fail unless the intervals cover both rates for at least 93 % of the seeds."""
    leads = pd.DataFrame({"email": [f"lead{number}@example.com" for number in range(size)]})
    found = pd.DataFrame([covered(seed, leads, interval) for seed in seeds], columns=list(RATES))
    assert (found.mean() >= 0.93).all(), found.mean()


def test_an_interval_covers_the_true_rate() -> None:
    """A campaign ends with a 95 % interval of each arm's reply rate."""
    check_coverage(range(1), 60, wilson)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_cover_the_true_rate() -> None:
    """95 % intervals cover reply rates of 4 % and 8 % for at least 93 % of the seeds."""
    from statsmodels.stats.proportion import proportion_confint

    check_coverage(range(200), 400, partial(proportion_confint, method="wilson"))
