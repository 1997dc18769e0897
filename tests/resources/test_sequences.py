"""Sequences: all are listed, in order, with every filter."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client

BACKENDS = ["numpy_nullable", "pyarrow"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_sequences_have_the_interfaces_columns(client: Client, backend: Any) -> None:
    """All sequences of several pages are listed, with the same dtypes as an empty listing."""
    everything = of.sequences(dtype_backend=backend)
    nothing = of.sequences(name="there is no such name", dtype_backend=backend)
    assert list(everything.columns) == list(spec.columns(spec.SEQUENCE))
    assert everything["id"].is_unique
    assert set(everything["status"]) == set(spec.SEQUENCE_STATUSES)
    pd.testing.assert_series_equal(nothing.dtypes, everything.dtypes)
    assert len(nothing) == 0


@pytest.mark.parametrize("status", spec.SEQUENCE_STATUSES)
def test_sequences_by_status(client: Client, status: str) -> None:
    """Each status returns exactly its sequences."""
    everything = of.sequences()
    expected = everything[everything["status"] == status].reset_index(drop=True)
    pd.testing.assert_frame_equal(of.sequences(status=status), expected, check_flags=False)


@pytest.mark.parametrize("column", ["created_by_user_id", "created_by_user_email"])
def test_sequences_by_creator(client: Client, column: str) -> None:
    """A user's id and email address return exactly the sequences that the user created."""
    everything = of.sequences()
    value = everything[column].iloc[0]
    found = of.sequences(**{column: value})
    assert list(found["id"]) == list(everything.loc[everything[column] == value, "id"])


def test_sequences_by_name_in_any_case(client: Client) -> None:
    """Part of a name in another case finds the sequence."""
    name = of.sequences()["name"].iloc[3]
    assert name in set(of.sequences(name=name[1:].upper())["name"])
