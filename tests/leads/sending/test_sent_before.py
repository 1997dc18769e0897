"""Finding people that this process has already sent to a sequence, without a journal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from outreach_frames.client.client import Client
from outreach_frames.errors import OutreachWarning
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.sending import sent_before
from tests import scripted as script
from tests.leads.sending.lead_service import added, connected, only_posts, sent
from tests.scripted import Received, Reply, scripted

Row = tuple[str | None, str | None]
A, B, C = (f"{name}@x.example" for name in "abc")
PROFILE, OTHER_PROFILE = "https://profnet.example/in/u", "https://profnet.example/in/v"
WEAK = "https://profnet.example/view?id=1"


@pytest.fixture
def client() -> Iterator[Client]:
    """Return a client that sends nothing."""
    with Client("https://service.example", "token", cache=None) as client:
        yield client


def frame_of(*rows: Row) -> pd.DataFrame:
    """Make a frame of pairs of address and profile."""
    return pd.DataFrame(rows, columns=["email", "profnet_url"], dtype="object")


def planned(*rows: Row, sequence_id: str = "s1") -> SubmissionPlan:
    """Plan rows that are pairs of address and profile."""
    return make_plan(frame_of(*rows), sequence_id)


def add(client: Client, plan: SubmissionPlan, rows: np.ndarray[Any, Any]) -> None:
    """Record these rows of a plan as sent."""
    with sent_before.recording(client, plan, lambda: rows):
        pass


def remember(client: Client, *rows: Row) -> None:
    """Record all of these rows as sent."""
    add(client, planned(*rows), np.arange(len(rows)))


def known(client: Client, *rows: Row) -> list[bool]:
    """Return whether each row was sent before."""
    return sent_before.are_sent(client, planned(*rows), np.arange(len(rows))).tolist()


def test_by_sequence_and_account(client: Client) -> None:
    """People are remembered per sequence, service and token."""
    add(client, planned((A, None), (B, None)), np.array([0]))
    assert known(client, (A, None), (B, None)) == [True, False]
    rows = np.arange(1)
    assert not sent_before.are_sent(client, planned((A, None), sequence_id="s2"), rows).any()
    with (
        Client("https://service.example", "other-token", cache=None) as other,
        Client("https://other.example", "token", cache=None) as elsewhere,
        Client("https://service.example", "token", cache=None) as again,
    ):
        assert known(other, (A, None)) == known(elsewhere, (A, None)) == [False]
        assert known(again, (A, None)) == [True]


def test_in_any_spelling(client: Client) -> None:
    """Addresses and profiles are matched in any spelling."""
    remember(client, (A, None), (None, PROFILE))
    assert known(client, ("A@X.example ", None), (None, "de.profnet.example/in/U/?trk=x")) == [
        True,
        True,
    ]


def test_persons_of_several_runs(client: Client) -> None:
    """Earlier and current rows form persons together; a weak URL links no row with an address."""
    remember(client, (A, PROFILE), (C, WEAK))
    assert known(client, (B, None), (None, OTHER_PROFILE), (B, OTHER_PROFILE)) == [False] * 3
    assert known(client, (B, None), (B, PROFILE)) == [True, True]
    remember(client, (B, PROFILE))
    assert known(client, (B, OTHER_PROFILE), (None, OTHER_PROFILE)) == [True, True]
    assert known(client, (None, WEAK), ("d@x.example", WEAK)) == [False, False]


def test_identifiers_of_an_earlier_plan(client: Client) -> None:
    """A row also matches by the identifiers that an earlier plan of its frame used."""
    frame = frame_of((A, None), (B, None)).assign(home=["home@x.example", C])
    plan = make_plan(frame, "s1", earlier_keys=(make_plan(frame, "s1", email="home").keys,))
    add(client, plan, np.array([0]))
    assert known(client, ("home@x.example", None), (C, None)) == [True, False]
    sent_before.clear()
    remember(client, ("home@x.example", None))
    assert sent_before.are_sent(client, plan, np.arange(2)).tolist() == [True, False]


def test_some_rows_in_any_order(client: Client) -> None:
    """Results are in the order of the requested rows."""
    remember(client, (B, None))
    plan = planned((A, None), (B, None), (C, None))
    assert sent_before.are_sent(client, plan, np.array([2, 1])).tolist() == [False, True]
    assert sent_before.are_sent(client, plan, np.array([], dtype=np.int64)).tolist() == []


def test_one_run_at_a_time(client: Client) -> None:
    """One run at a time may send to an account's sequence; a failed run makes it free again."""
    plan, other = planned((A, None)), planned((A, None), sequence_id="s2")
    with ExitStack() as first, Client("https://service.example", "other", cache=None) as account:
        assert first.enter_context(sent_before.sending(client, plan))
        for _ in range(2):
            with sent_before.sending(client, planned((B, None))) as is_free:
                assert not is_free
        with sent_before.sending(client, other) as is_free:
            assert is_free
        with sent_before.sending(account, plan) as is_free:
            assert is_free

    def fail() -> None:
        with sent_before.sending(client, plan) as is_free:
            assert is_free
            raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            fail()


class TestWarning:
    """The warning of a later call without the earlier call's journal."""

    @staticmethod
    def add(client: Client, *rows: Row, journal: Path | None = None) -> list[str]:
        """Add rows; return the warnings about rows that this process sent before."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", OutreachWarning)
            frame_of(*rows).outreach.add_to_sequence(
                "s1", client=client, journal=journal, progress=False
            )
        said = [str(each.message) for each in caught]
        return [words.partition(".")[0] for words in said if "Python process" in words]

    @pytest.mark.parametrize("name", ["", "already_in_sequence_and_skipped"])
    def test_rows_that_may_have_arrived(self, name: str) -> None:
        """The warning counts added rows, their duplicates and unknown rows."""

        def reply(received: Received) -> Reply:
            if not name:
                return added(received)
            leads = received.json["leads"]
            return script.json({"total": len(leads), "total_added_to_sequence": 0, name: leads})

        with scripted(only_posts([reply, script.reset(), added])) as service:
            with connected(service) as client:
                assert self.add(client, (A, None), (A, PROFILE)) == []
                before = 0 if name else 1
                said = self.add(client, (None, PROFILE), (B, None))
                assert (
                    said
                    == ["This Python process sent 1 of 2 leads to this sequence before"] * before
                )
                said = self.add(client, (B, None), (None, PROFILE), (C, None))
                assert said == ["This Python process sent 2 of 3 leads to this sequence before"]
                assert len(sent(service)) == 3

    @pytest.mark.parametrize(
        "reply", [script.json({}, 400), script.json({}, 401)], ids=["rejected", "not sent"]
    )
    def test_rows_that_did_not_arrive(self, reply: Reply) -> None:
        """Resending rejected or unsent rows causes no warning."""
        with scripted(only_posts([reply, added])) as service, connected(service) as client:
            assert self.add(client, (A, None)) == self.add(client, (A, None)) == []

    def test_with_a_journal(self, tmp_path: Path) -> None:
        """Rows in the call's journal cause no warning."""
        with scripted(only_posts([added] * 3)) as service, connected(service) as client:
            assert self.add(client, (A, None), journal=tmp_path / "j") == []
            assert self.add(client, (A, None), (B, None), journal=tmp_path / "j") == []
            assert self.add(client, (A, None), journal=tmp_path / "other") == [
                "This Python process sent 1 of 1 lead to this sequence before"
            ]

    def test_a_retry_of_unknown_rows(self) -> None:
        """`retry_unknown` causes no warning."""
        with scripted(only_posts([script.reset(), added])) as service, connected(service) as client:
            with pytest.warns(OutreachWarning, match="1 is unknown"):
                report = frame_of((A, None)).outreach.add_to_sequence("s1", client=client)
            with warnings.catch_warnings():
                warnings.simplefilter("error", OutreachWarning)
                assert report.retry_unknown().rows["status"].tolist() == ["added"]
