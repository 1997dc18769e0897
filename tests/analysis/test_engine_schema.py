"""Other engines read our files with the published schema instead of guessing types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.json as arrow_json
import pyarrow.parquet as pq
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError

# Values that an engine without the schema would convert to another type.
TRICKY: dict[str, Any] = {
    "id": "1",
    "name": "2024-01-01",
    "current_position_start_date": "2024-02-29",
    "location_details": {"lat": 1},
    "experiences": [{"start_date": "2020-01-01", "title": None}],
    "company": {"sic_codes": [7], "keywords": ["a"], "founded_year": 1999},
}


def test_the_flat_schema_is_that_of_our_parquet_files(client: Client, tmp_path: Path) -> None:
    """Arrow, Polars and DuckDB read exactly these columns and types from the parts."""
    parts = of.export_people(tmp_path / "parts", progress=False) / "part-00000.parquet"
    assert pq.read_schema(parts).remove_metadata() == of.schema()
    assert pl.scan_parquet(parts).collect_schema() == of.schema("polars")
    described = duckdb.sql(f"describe select * from '{parts}'").fetchall()
    empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in of.schema("duckdb").items())
    given = duckdb.sql(f"describe select {empty}").fetchall()
    assert [row[:2] for row in described] == [row[:2] for row in given]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Write NDJSON with values that look like another type."""
    path = tmp_path / "people.ndjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in (TRICKY, {"id": "2"})))
    return path


def test_every_engine_reads_ndjson_by_the_nested_schema(lines: Path) -> None:
    """Text is read as text, counts as numbers, and missing values as null."""
    options = arrow_json.ParseOptions(
        explicit_schema=of.schema(form="nested"), unexpected_field_behavior="error"
    )
    by_arrow = arrow_json.read_json(lines, parse_options=options).to_pylist()
    by_polars = pl.read_ndjson(lines, schema=of.schema("polars", form="nested")).to_dicts()
    columns = of.schema("duckdb", form="nested")
    relation = duckdb.read_json(str(lines), columns=columns, format="newline_delimited")
    by_duckdb = [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]
    for rows in (by_arrow, by_polars, by_duckdb):
        assert [list(row) for row in rows] == [of.schema(form="nested").names] * 2
        first, second = rows
        assert first["name"] == "2024-01-01"
        assert first["current_position_start_date"] == "2024-02-29"
        assert first["experiences"][0]["start_date"] == "2020-01-01"
        assert first["company"]["founded_year"] == 1999
        assert first["company"]["keywords"] == ["a"]
        assert second["id"] == "2"
        assert second["experiences"] is None


def test_duckdb_reads_locations_of_any_form(tmp_path: Path) -> None:
    """Elements of an undocumented type may be texts or objects; DuckDB reads them as JSON."""
    path = tmp_path / "people.ndjson"
    path.write_text(
        '{"company":{"locations":["Oslo"]}}\n{"company":{"locations":[{"city":"X"}]}}\n'
    )
    people = duckdb.read_json(
        str(path), columns=of.schema("duckdb", form="nested"), format="newline_delimited"
    )
    (first,), (second,) = people.select("company.locations").fetchall()
    assert [first, second] == [['"Oslo"'], ['{"city":"X"}']]


@pytest.mark.parametrize("form", ["flat", "nested"])
@pytest.mark.parametrize("table", spec.FRAMES)
def test_every_table_has_a_schema_in_every_engine(table: str, form: str) -> None:
    """All engines have the same columns; flat tables have those of `columns`."""
    names = of.schema(table=table, form=form).names
    if form == "flat":
        assert names == of.columns(table)["name"].tolist()
    assert list(of.schema("duckdb", table=table, form=form)) == names
    assert of.schema("polars", table=table, form=form).names() == names
    spark = of.schema("spark", table=table, form=form)
    described = json.loads(spark if isinstance(spark, str) else spark.json())
    assert [field["name"] for field in described["fields"]] == names


def test_spark_gets_a_struct_type_or_its_json() -> None:
    """Without pyspark, the schema is the JSON that `StructType.fromJson` reads."""
    spark = of.schema("spark", form="nested")
    described = json.loads(spark if isinstance(spark, str) else spark.json())
    kinds = {field["name"]: field["type"] for field in described["fields"]}
    assert kinds["experiences"]["elementType"]["fields"][0]["type"] == "string"
    assert kinds["location_details"]["fields"][3] == {
        "name": "lat",
        "type": "double",
        "nullable": True,
        "metadata": {},
    }


def test_dates_are_times_in_tables_and_text_in_json() -> None:
    """A date is a microsecond timestamp in our files, and text in the service's JSON."""
    assert of.schema().field("company_latest_funding_date").type == pa.timestamp("us")
    assert of.schema(table="contacts").field("last_contacted_at").type == pa.timestamp("us", "UTC")
    assert of.schema(table="contacts", form="nested").field("last_contacted_at").type == pa.string()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"engine": "pandas"}, "arrow, duckdb, polars, spark"),
        ({"table": "persons"}, "people"),
        ({"form": "wide"}, "flat, nested"),
        ({"form": None}, "flat, nested"),
    ],
)
def test_unknown_arguments_are_an_error(arguments: dict[str, Any], words: str) -> None:
    """An unknown engine, table or form is an error that lists the valid ones."""
    with pytest.raises(InvalidInputError, match=words):
        of.schema(**arguments)
