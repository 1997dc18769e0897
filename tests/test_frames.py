"""Frames of other libraries give the same results, and result frames can be used in them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes

import outreach_frames as of
from outreach_frames.accessor import OutreachAccessor
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from outreach_frames.sandbox import Sandbox
from tests.examples import share_of_examples
from tests.gallery import frames as gallery
from tests.leads.sending.lead_service import added, connected, only_posts, sent
from tests.libraries import LIBRARIES
from tests.plots.artists import plain_axes
from tests.scripted import scripted

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::outreach_frames.errors.OutreachWarning"),
]

Accessor = Callable[..., Any]
DATA = ["title", "company_founded_year", "company_is_b2b", "company_latest_funding_date"]


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame], Any]:
    """Return a function that converts a pandas frame to one of the libraries."""
    return LIBRARIES[request.param]


# Each method and plot is tested with one library in turn, or with all of them.
HOW_MANY = [1, pytest.param(len(LIBRARIES), marks=pytest.mark.slow)]


def in_turn(turn: int, how_many: int) -> list[tuple[str, Callable[[pd.DataFrame], Any]]]:
    """Return some of the libraries; each turn begins with the next library."""
    first = turn % len(LIBRARIES)
    libraries = list(LIBRARIES.items())
    return (libraries[first:] + libraries[:first])[:how_many]


def read(path: Path) -> pd.DataFrame:
    """Read a file and remove it, so that its name can be reused."""
    frame = (
        pd.read_excel(path, engine="openpyxl")
        if path.suffix == ".xlsx"
        else of.read_prospects(path)
    )
    path.unlink()
    return frame


def a_sequence() -> str:
    """Return the id of an active sequence."""
    return str(of.sequences(status="active")["id"].iloc[0])


def empty_journal(folder: Path) -> Path:
    """Return the journal of a submission without rows."""
    path = folder / "empty.journal"
    pd.DataFrame({"email": pd.Series(dtype="str")}).outreach.add_to_sequence(
        a_sequence(), journal=path
    )
    return path


# The arguments of each method, and the part of its result to compare.
METHODS: dict[str, Callable[[Accessor, pd.DataFrame, Path], Any]] = {
    "plan": lambda call, _, __: pd.DataFrame(call(a_sequence(), data=DATA).payloads()),
    "validate": lambda call, _, __: call(email="headline", data=["about"]),
    "add_to_sequence": lambda call, _, __: call(a_sequence(), data=DATA, dry_run=True).frame,
    "report": lambda call, _, folder: call(journal=empty_journal(folder)).frame,
    "to_csv": lambda call, _, folder: read(call(folder / "people.csv")),
    "to_excel": lambda call, _, folder: read(call(folder / "people.xlsx")),
    "to_parquet": lambda call, _, folder: read(call(folder / "people.parquet")),
    "segments": lambda call, _, __: call(["company_industry", "gender"]),
    "tenure": lambda call, _, __: call(as_of="2026-01-01"),
    "find_people": lambda call, _, __: call(company_name="company_name", per_company=1).accounts,
    "match": lambda call, people, _: call(people[3:9], profnet_url="profnet_url"),
    "without": lambda call, people, _: call(people[3:9], domain=("company_website", "website")),
}


@pytest.mark.parametrize("libraries", HOW_MANY)
def test_every_method_returns_the_same(
    people: pd.DataFrame, client: Client, sandbox: Sandbox, tmp_path: Path, libraries: int
) -> None:
    """`outreach(frame)` has the methods of `df.outreach`, with the same results for equal rows."""
    contacts = of.contacts(sandbox.contact_ids[:5])
    some = people.head(12).assign(website=people["company_website"])
    names = {name for name in vars(OutreachAccessor) if not name.startswith("_")}
    assert set(METHODS) < names
    for turn, name in enumerate(sorted(names)):
        frame = contacts if name in ("phone_numbers", "recent_activity") else some
        call = METHODS.get(name, lambda method, _, __: method())
        expected = call(getattr(frame.outreach, name), some, tmp_path)
        for library, make in in_turn(turn, libraries):
            found = call(getattr(of.outreach(make(frame)), name), some, tmp_path)
            pd.testing.assert_frame_equal(found, expected, obj=f"{name} of {library}")


def test_other_tables_may_be_of_any_library(people: pd.DataFrame, library: Any) -> None:
    """Tables to match or exclude give the same results from any library."""
    ours, theirs = people[:20], people[10:40].reset_index(drop=True)
    pd.testing.assert_frame_equal(ours.outreach.match(library(theirs)), ours.outreach.match(theirs))
    pd.testing.assert_frame_equal(ours.outreach.without(library(theirs), people[:2]), ours[2:10])


def test_functions_return_the_same(people: pd.DataFrame, client: Client, library: Any) -> None:
    """Comparisons, capacities and suggestions are the same for frames of any library."""
    before, after = people[:30], people[5:40].assign(title="CTO")
    compared = [
        of.compare_people(*pair) for pair in ((before, after), (library(before), library(after)))
    ]
    for part in ("appeared", "disappeared", "changed", "employer_changes", "headcount"):
        pd.testing.assert_frame_equal(*(getattr(one, part) for one in compared), obj=part)
    boxes = of.mailboxes()
    boxes = boxes[boxes["status"].eq("active")]
    pd.testing.assert_frame_equal(
        of.sending_capacity(library(boxes), library(people), start="2026-03-02"),
        of.sending_capacity(boxes, len(people), start="2026-03-02"),
    )
    suggested = [
        of.widgets.PeopleSearch(suggest_from=one)._suggest_from for one in (people, library(people))
    ]
    assert suggested[0] == suggested[1] != {}


@pytest.mark.parametrize("libraries", HOW_MANY)
@pytest.mark.parametrize("name", sorted(of.plots.__all__))
def test_plots_show_the_same(people: pd.DataFrame, name: str, libraries: int) -> None:
    """Each plot is the same for a frame of another library."""
    made: dict[str, Callable[[int], pd.DataFrame]] = {
        "capacity": gallery.sending_days,
        "headcount_change": gallery.changes,
        "outcomes": gallery.outcomes,
    }
    # Columns may have the names of attributes of reports and comparisons.
    named = {"summary": 1, "headcount": 1}
    data = made[name](5).assign(**named) if name in made else people.head(12)
    options = {"by": "company_industry"} if name == "segments" else {}
    shown = []
    others = in_turn(sorted(of.plots.__all__).index(name), libraries)
    for make in (lambda frame: frame, *(make for _, make in others)):
        axes: Axes = getattr(of.plots, name)(make(data), ax=plain_axes(), **options)
        extents = [patch.get_extents().bounds for patch in axes.patches]
        shown.append(([text.get_text() for text in (axes.title, *axes.texts)], extents))
    assert all(one == shown[0] for one in shown[1:])


def test_columns_may_be_of_any_library() -> None:
    """Keys and ids accept columns of Polars and Arrow, and reject whole frames."""
    addresses = ["Ada@Brightforge.example", None, "bo@x.example"]
    expected = of.keys.email(addresses)
    for column in (pl.Series(addresses), pa.array(addresses), pa.chunked_array([addresses])):
        pd.testing.assert_series_equal(of.keys.email(column), expected)
    for frame in (pl.DataFrame({"email": addresses}), pa.table({"email": addresses})):
        with pytest.raises(InvalidInputError, match="a list of text or a frame's column"):
            of.keys.email(frame)


def test_contacts_are_read_by_columns_of_any_library(client: Client) -> None:
    """Emails can be a column of Polars or Arrow."""
    addresses = ["nobody@brightforge.example", None]
    for column in (pl.Series(addresses), pa.chunked_array([addresses])):
        assert of.contacts(emails=column)["asked"].tolist()[:1] == addresses[:1]
    with pytest.raises(InvalidInputError, match="emails takes a list"):
        of.contacts(emails=pl.DataFrame({"email": addresses}))


def test_a_widget_accepts_any_frame(library: Any) -> None:
    """AddToSequence guesses the columns of any frame, and its code runs with that frame."""
    leads = pd.DataFrame({"E-Mail": ["ada@x.example", "n/a"], "First Name": ["Ada", None]})
    with scripted(only_posts(repeat(added))) as service, connected(service) as client:
        widget = of.widgets.AddToSequence(library(leads), client)
        widget.value = {**widget.value, "sequence_id": "s1"}
        assert widget.code.splitlines()[-1] == (
            "report = of.outreach(df).add_to_sequence('s1', email='E-Mail', client=client)"
        )
        names: dict[str, Any] = {"of": of, "df": library(leads), "client": client}
        exec(widget.code, names)
        assert names["report"].rows["status"].tolist() == ["added", "invalid"]
        widget.close()


def test_a_widget_rejects_other_objects() -> None:
    """AddToSequence rejects an object that is not a frame, and names accepted types."""
    for wrong in ([1], pl.LazyFrame({"email": ["a@x.example"]})):
        with pytest.raises(InvalidInputError, match="AddToSequence takes a frame"):
            of.widgets.AddToSequence(wrong)


def test_a_relation_is_read_once() -> None:
    """The checked rows of a relation are sent and reported, even if it changes when read again."""
    with (
        duckdb.connect() as connection,
        scripted(only_posts(repeat(added))) as service,
        ExitStack() as stack,
    ):
        client = stack.enter_context(connected(service))
        connection.execute("create sequence read")
        relation = connection.sql(
            "select 'lead' || nextval('read') || '.x@x.example' email from range(3)"
        )
        accessor = of.outreach(relation)
        assert accessor.validate().empty
        plan = accessor.plan("s1", client=client)
        report = plan.submit(progress=False)
        assert report.frame["email"].tolist() == [
            lead["email"] for each in plan.payloads() for lead in each["leads"]
        ]
        assert sorted(report.frame["email"]) == [f"lead{n}.x@x.example" for n in (1, 2, 3)]
        assert sent(service) == [[email.partition(".")[0] for email in report.frame["email"]]]


def test_positions_are_those_of_the_frame() -> None:
    """A report's rows have the order and row numbers of the frame."""
    leads = pl.DataFrame({"n": [3, 1, 2], "email": ["c@x.example", "n/a", "b@x.example"]})
    problems = of.outreach(leads.filter(pl.col("n") < 3)).validate()
    assert problems["row"].tolist() == problems["index"].tolist() == [0, 0]
    frame = of.outreach(leads).plan("s1").frame
    assert frame["n"].tolist() == [3, 1, 2]


CELLS = {
    "email": st.sampled_from(["Ada@x.example", "ada@X.example", "bo@x.example", "n/a", "c@", ""]),
    "year": st.integers(-(2**63), 2**63 - 1),
    "score": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "since": st.datetimes(pd.Timestamp(1900, 1, 1), pd.Timestamp(2200, 1, 1)),
    "note": st.text(st.characters(codec="utf-8"), max_size=5),
}
DTYPES = {
    "email": "str",
    "year": "Int64",
    "score": "Float64",
    "flag": "boolean",
    "since": "datetime64[us]",
    "note": "str",
}


@share_of_examples(0.3)
@given(st.lists(st.fixed_dictionaries({n: st.none() | c for n, c in CELLS.items()}), max_size=5))
def test_the_same_bytes_are_sent(rows: list[dict[str, Any]]) -> None:
    """Leads and problems are equal for equal rows of any library."""
    columns = {
        name: pd.array([row[name] for row in rows], dtype=dtype) for name, dtype in DTYPES.items()
    }
    frame = pd.DataFrame(columns)
    data = [name for name in CELLS if name != "email"]
    options: Any = {"data": data}
    expected = frame.outreach.plan("s1", **options)
    for make in LIBRARIES.values():
        plan = of.outreach(make(frame)).plan("s1", **options)
        assert list(plan.payloads()) == list(expected.payloads())
        pd.testing.assert_frame_equal(plan.problems, expected.problems)


BACKENDS: tuple[Any, ...] = ("numpy_nullable", "pyarrow")
FOUNDED = "company_founded_year"


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


def test_an_unknown_argument_names_the_nearest_one() -> None:
    """The TypeError of a method has its public name and the nearest argument."""
    leads = pd.DataFrame({"email": ["ada@x.example"], "Website": ["x.example"]})
    with pytest.raises(TypeError, match=r"^plan\(\) .* 'emial'\. Did you mean 'email'\?"):
        leads.outreach.plan("s1", emial="email")
    with pytest.raises(TypeError, match=r"^to_excel\(\) .* 'sheet'\."):
        leads.outreach.to_excel("x.xlsx", sheet="a")
    with pytest.raises(InvalidInputError, match="Pass it by its argument: domain='Website'"):
        leads.outreach.find_people("Website")
    with pytest.raises(InvalidInputError, match=r"use of\.snapshot_people\(\) on two"):
        of.compare_people("leaders")
