"""Result frames can be used in other libraries."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import matplotlib as mpl
import pandas as pd
import polars as pl
import pyarrow as pa
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


def test_seaborn(found: pd.DataFrame) -> None:
    """seaborn draws people and tidy headcounts, and a wide table after conversion to floats."""
    import seaborn as sns

    mpl.use("agg")
    mpl.pyplot.close("all")
    axes = sns.countplot(found, y=INDUSTRY)
    counts = found[INDUSTRY].value_counts()
    assert sorted(patch.get_width() for patch in axes.patches) == sorted(counts)
    mpl.pyplot.close("all")
    tidy = found.outreach.headcount()
    assert len(sns.barplot(tidy, x="people", y="department").patches) == 14
    wide = tidy.pivot_table(index="company", columns="department", values="share").astype(float)
    assert sns.heatmap(wide).get_xlabel() == "department"
    mpl.pyplot.close("all")


def test_altair(found: pd.DataFrame) -> None:
    """Altair draws a frame, also with Arrow-backed dates."""
    import altair as alt

    is_arrow = isinstance(found["id"].dtype, pd.ArrowDtype)
    few = found.outreach.brief(["name", INDUSTRY, "company_latest_funding_date"])
    chart = alt.Chart(pa.table(few) if is_arrow else few).mark_bar()
    chart = chart.encode(x="count()", y=INDUSTRY, color="year(company_latest_funding_date)")
    (rows,) = json.loads(chart.to_json())["datasets"].values()
    assert [row[INDUSTRY] for row in rows] == [
        None if pd.isna(name) else name for name in found[INDUSTRY]
    ]


def test_great_tables(found: pd.DataFrame) -> None:
    """great_tables shows selected columns, and lists after conversion to text."""
    from great_tables import GT

    assert found["name"].iloc[0] in GT(found.outreach.brief().head(3)).as_raw_html()
    lists = found[["name", "languages", "company_keywords"]].head(3)
    shown = lists.outreach.unlist()
    assert shown["company_keywords"].iloc[0].split("; ")[0] in GT(shown).as_raw_html()


def test_itables(found: pd.DataFrame) -> None:
    """itables shows people unchanged, with their lists."""
    import itables

    html = itables.to_html_datatable(found.head(3))
    assert found["name"].iloc[0] in html
