"""Tasks that look at people, plan a campaign and hand results on, each in a few lines."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd

import outreach_frames as of
from outreach_frames.client.client import Client


def test_market_by_two_filters_as_a_plot(client: Client) -> None:
    """The counts by seniority and size are one plot, with the sizes in order."""
    sizes = list(of.spec.SUGGESTED_COMPANY_SIZES)
    market = {"person_seniorities": ["vp", "director"], "company_sizes": sizes}
    counts = of.count_people(market, by=["person_seniorities", "company_sizes"])
    table = counts.pivot(index="company_sizes", columns="person_seniorities", values="people")
    axes = table.plot.barh()
    assert [text.get_text() for text in axes.get_yticklabels()] == sizes
    assert sum(bar.get_width() for bar in axes.patches) == counts["people"].sum()


def test_limits_by_address(client: Client) -> None:
    """Limits are set by the addresses of a table, without ids."""
    wanted = of.mailboxes()[["email"]].head(2).assign(daily_email_limit=[21, 22])
    changed = of.set_daily_email_limit(wanted)
    assert changed.set_index("email")["daily_email_limit"].to_dict() == dict(
        zip(wanted["email"], [21, 22], strict=True)
    )


def test_people_to_a_duckdb_table(client: Client, tmp_path: Path) -> None:
    """An export becomes a table of DuckDB in one statement, lists included."""
    folder = of.export_people(tmp_path / "people", person_seniorities=["vp"])
    database = duckdb.connect(tmp_path / "market.duckdb")
    database.sql(f"create table people as from '{folder}/*.parquet'")
    [counted] = database.sql("select count(*), count(distinct id) from people").fetchall()
    assert counted == (of.count_people(person_seniorities=["vp"]),) * 2


def test_columns_with_nicknames(people: pd.DataFrame, tmp_path: Path) -> None:
    """A workbook for a colleague has the labels of columns in place of their names."""
    labels = of.columns().set_index("name")["label"]
    path = people.outreach.brief().rename(columns=labels).outreach.to_excel(tmp_path / "x.xlsx")
    assert pd.read_excel(path).columns[:3].tolist() == ["Name", "Title", "Company name"]
    assert not people.rename(columns=labels).columns.duplicated().any()
