"""Result frames can be used in other libraries."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

import outreach_frames as of
from outreach_frames.client.client import Client

pytestmark = pytest.mark.long

BACKENDS: tuple[Any, ...] = ("numpy_nullable", "pyarrow")
FOUNDED, INDUSTRY = "company_founded_year", "company_industry"


@pytest.fixture(params=BACKENDS)
def found(request: pytest.FixtureRequest, client: Client) -> pd.DataFrame:
    """Return people from a search, with each dtype backend."""
    return of.search_people(person_seniorities=["vp"], limit=None, dtype_backend=request.param)


def test_polars(found: pd.DataFrame) -> None:
    """Polars converts a frame with lists and dates, with both of its functions."""
    for frame in (pl.from_pandas(found), pl.DataFrame(found)):
        assert frame.shape == found.shape
        assert frame.schema["current_position_start_date"] == pl.Datetime("us")
        held = frame.explode("experiences")["experiences"].struct.field("title")
        assert held.len() == len(found.explode("experiences"))


def test_duckdb(found: pd.DataFrame) -> None:
    """DuckDB reads a frame by its variable name, including lists."""
    with duckdb.connect() as connection:
        connection.register("found", found)
        people, oldest = connection.sql(f"select count(*), min({FOUNDED}) from found").fetchall()[0]
        assert (people, oldest) == (len(found), found[FOUNDED].min())
        held = connection.sql("select unnest(experiences).title from found").fetchall()
        assert len(held) == found["experiences"].list.len().sum()
        assert duckdb.sql("from found").count("*").fetchall() == [(len(found),)]
