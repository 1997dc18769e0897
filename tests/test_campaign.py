"""A whole campaign: arms, one sequence per arm, and reply rates a month later."""

from __future__ import annotations

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


def covered(seed: int, leads: pd.DataFrame) -> list[bool]:
    """Return for each arm whether the interval of its reply rate covers the true rate."""
    leads = leads.outreach.assign_arms({"A": 1, "B": 1}, by="person", seed=seed)
    found = []
    with of.connect("sandbox", people=1, seed=seed, cache=None) as client:
        reports = {}
        for arm, shows in SHOWS.items():
            sequence_id = client.sandbox.sequence_ids[shows]
            client.sandbox.set_response_rates(sequence_id, reply_rate=RATES[arm])
            reports[arm] = leads[leads["arm"] == arm].outreach.add_to_sequence(sequence_id)
        client.sandbox.advance(days=30)
        for arm, report in reports.items():
            counts = report.activity_counts()
            assert counts["contact_found"].all()
            assert (counts["events_email_sent"] == 1).all()
            replied = int((counts.get("events_email_replied", pd.Series([0])) > 0).sum())
            low, high = wilson(replied, len(counts))
            found.append(low <= RATES[arm] <= high)
    return found


def test_an_interval_covers_the_true_rate() -> None:
    """A campaign ends with a 95 % interval of each arm's reply rate."""
    leads = pd.DataFrame({"email": [f"lead{number}@example.com" for number in range(60)]})
    assert covered(0, leads) == [True, True]
