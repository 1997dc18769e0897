"""Reports of submissions: one row per input row, as frames, files and text."""

from __future__ import annotations

import html
import pickle
import re
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.errors import (
    AuthenticationError,
    InvalidInputError,
    ValidationFailedError,
    ValidationProblem,
)
from outreach_frames.leads import statuses
from outreach_frames.leads.cards import MEANINGS
from outreach_frames.leads.plan import make_plan
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.rows import make_rows

DTYPES = {
    "index": "object",
    "status": "str",
    "detail": "str",
    "error_code": "str",
    "earlier_run": "boolean",
    "chunk": "Int64",
    "attempts": "Int64",
    "sent_at": "datetime64[us, UTC]",
}
FILES = {
    "added.csv": ["added", "present"],
    "failed.csv": ["invalid", "rejected", "unknown", "not_sent"],
    "skipped.csv": [
        "duplicate_in_frame",
        "duplicate_in_request",
        "in_exclusion_list",
        "recently_contacted",
        "already_in_sequence",
        "in_other_draft_sequences",
        "in_other_active_sequences",
        "a_list_of_tomorrow",
    ],
    "would_send.csv": ["would_send"],
}
EVERY_STATUS = [status for some in FILES.values() for status in some]
INDEXES = {
    "default": None,
    "twice": ["x", "x", "y", "x"],
    "dates": pd.date_range("2025-01-01", periods=4),
    "levels": pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["team", "number"]),
    "backwards": pd.RangeIndex(4, 0, -1),
    "categories": pd.CategoricalIndex(["a", "b", "a", "b"]),
}


def people(index: Any = None) -> pd.DataFrame:
    """Make four rows; the second is invalid and the third a duplicate."""
    emails = ["ada@example.com", "ada", "ADA@example.com", "bo@example.com"]
    return pd.DataFrame({"email": emails, "status": [1, 2, 3, 4]}, index=index)


def report(row_statuses: list[str], frame: pd.DataFrame | None = None, **kwargs: Any) -> Any:
    """Make a report with these statuses; `detail` may hold a detail per row."""
    details = kwargs.pop("detail", [""] * len(row_statuses))
    if frame is None:
        frame = pd.DataFrame({"number": range(len(row_statuses))})
    rows = pd.DataFrame(
        {
            "index": pd.Series(frame.index.to_list(), dtype="object"),
            "status": row_statuses,
            "detail": details,
            "error_code": None,
            "chunk": [None if status == "not_sent" else 1 for status in row_statuses],
            "attempts": [0 if status == "not_sent" else 1 for status in row_statuses],
        }
    )
    return SubmissionReport(frame, rows, **{"sequence_id": "seq_1", **kwargs})


def test_columns_and_dtypes_are_always_the_same() -> None:
    """The columns and dtypes of `rows` do not depend on the number of rows."""
    for size in (0, 1, 4):
        frame = people().iloc[:size]
        plan = make_plan(frame, "seq_1")
        rows = make_rows(plan, {}, plan.kept)
        made = SubmissionReport(frame, rows, sequence_id="seq_1")
        assert made.rows.dtypes.astype(str).to_dict() == DTYPES
        assert made.rows.index.equals(pd.RangeIndex(size))
        assert made.frame.dtypes.astype(str).to_dict() == {
            **frame.dtypes.astype(str).to_dict(),
            "outreach_status": "str",
            **{name: DTYPES[name] for name in OUTCOMES[1:]},
        }


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_frame_is_the_input_with_outcomes(index: Any) -> None:
    """`frame` is the unchanged input frame with the outcome of each row."""
    frame = people(index)
    frame.columns.name = "fields"
    frame.attrs["source"] = "fair"
    before = frame.copy()
    made = report(["added", "invalid", "unknown", "present"], frame)
    pd.testing.assert_frame_equal(made.frame.iloc[:, :2], before)
    assert made.frame["outreach_status"].to_list() == ["added", "invalid", "unknown", "present"]
    assert made.frame.columns.name == "fields"
    assert made.frame.attrs == {"source": "fair"}
    pd.testing.assert_frame_equal(frame, before)
    frame["new"] = 1
    assert "new" not in made.frame


OUTCOMES = ["status", "detail", "error_code", "earlier_run", "chunk", "attempts", "sent_at"]
PREFIXED = [f"outreach_{name}" for name in OUTCOMES[:4]]
OWN_STATUS = ["outreach_status", *OUTCOMES[1:]]

# The input's columns, the kept ones, and the appended ones.
COLUMNS: list[tuple[Any, Any, list[str]]] = [
    (["email", *OUTCOMES], ["email"], OUTCOMES),
    (["email", *OUTCOMES[:4]], ["email"], OUTCOMES),
    # The column order of to_excel, and of a table whose columns were moved.
    (["email", "status", "error_code", "earlier_run", "detail"], ["email"], OUTCOMES),
    (["error_code", "status", "email", "detail", "earlier_run"], ["email"], OUTCOMES),
    # The analyst has an own status column.
    (["status", *OWN_STATUS], ["status"], OWN_STATUS),
    (["outreach_status", "status", *OUTCOMES[1:4]], ["status"], OWN_STATUS),
    # A column that was added later is kept, even if a report has its name.
    (
        [*OUTCOMES[:4], "note", "attempts"],
        ["note", "attempts"],
        [*OUTCOMES[:5], "outreach_attempts", "sent_at"],
    ),
    ([*OUTCOMES[:4], "status"], [*OUTCOMES[:4], "status"], [*PREFIXED, *OUTCOMES[4:]]),
    # Input columns keep their names of any kind.
    (["a", "a"], ["a", "a"], OUTCOMES),
    ([0, 1], [0, 1], OUTCOMES),
    (pd.CategoricalIndex(["a", "b"]), ["a", "b"], OUTCOMES),
]


@pytest.mark.parametrize(("columns", "kept", "appended"), COLUMNS)
def test_an_earlier_report_s_columns_are_replaced(
    columns: Any, kept: list[Any], appended: list[str]
) -> None:
    """A complete set of an earlier report's columns is replaced; other columns stay."""
    frame = pd.DataFrame([["invalid"] * len(columns)], columns=columns)
    made = report(["added"], frame).frame
    assert made.columns.to_list() == [*kept, *appended]
    assert made.iloc[0].to_list()[: len(kept) + 1] == ["invalid"] * len(kept) + ["added"]


def test_summary() -> None:
    """The summary counts each status that occurs, in the documented order."""
    made = report(["unknown", "zeta", "added", "alpha", "added", "in_exclusion_list", "alpha"])
    assert made.summary().to_dict("list") == {
        "status": ["added", "in_exclusion_list", "unknown", "zeta", "alpha"],
        "rows": [2, 1, 1, 1, 2],
        "earlier_run": [0] * 5,
    }
    for summary in (made.summary(), report([]).summary()):
        assert summary.dtypes.astype(str).to_dict() == {
            "status": "str",
            "rows": "Int64",
            "earlier_run": "Int64",
        }
    assert report([]).summary().empty
    shuffled = sorted(statuses.STATUSES, reverse=True)
    assert report(shuffled).summary()["status"].to_list() == list(statuses.STATUSES)


def test_to_csv_puts_every_row_into_one_file(tmp_path: Path) -> None:
    """Each row is in its status's file; rows with an undocumented status are in skipped.csv."""
    assert set(statuses.STATUSES) < set(EVERY_STATUS)
    folder = tmp_path / "new" / "folder"
    assert report(EVERY_STATUS * 2).to_csv(folder) == folder
    for name, expected in FILES.items():
        assert (folder / name).read_text().startswith('"number","status"')
        written = of.read_prospects(folder / name)
        assert written["status"].to_list() == expected * 2
        assert written.columns.to_list() == ["number", *OUTCOMES[:4]]
        assert written["number"].to_list() == [
            number for number, status in enumerate(EVERY_STATUS * 2) if status in expected
        ]
    # Files without rows replace those of an earlier report or dry run.
    report([]).to_csv(folder)
    for name in FILES:
        assert (folder / name).read_text().split() == [
            '"number","status","detail","error_code","earlier_run"'
        ]
        assert of.read_prospects(folder / name).empty
    report([]).to_csv(tmp_path)
    assert {path.name for path in tmp_path.glob("*.csv")} == FILES.keys() - {"would_send.csv"}


def test_to_csv_writes_text_and_labels(tmp_path: Path) -> None:
    """Formulas in the input and in messages are escaped, and a custom index comes first."""
    frame = pd.DataFrame({"name": ["=1+1"]})
    report(["added"], frame, detail=["=2+2"]).to_csv(tmp_path)
    assert '"\'=1+1","added","\'=2+2"' in (tmp_path / "added.csv").read_text()
    report(["added", "unknown", "added", "added"], people(INDEXES["levels"])).to_csv(tmp_path)
    written = of.read_prospects(tmp_path / "added.csv")
    assert written.index.to_list() == [("a", 1), ("b", 1), ("b", 2)]
    assert (tmp_path / "added.csv").read_text().startswith('"team","number","email","status"')
    named = people().rename_axis("id")
    report(["added"] * 4, named).to_csv(tmp_path)
    assert (tmp_path / "added.csv").read_text().startswith('"id","email","status"')


def test_to_csv_with_any_column_names(tmp_path: Path) -> None:
    """Column names in a file are unique text."""
    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", ""), ("b", 1)])
    names: list[tuple[Any, list[str]]] = [
        (["a", "a", "a_2"], ["a", "a_2", "a_2_2"]),
        ([0, "0", None], ["0", "0_2", "None"]),
        (levels, ["a_x", "a", "b_1"]),
    ]
    for columns, expected in names:
        report(["added"], pd.DataFrame([[1, 2, 3]], columns=columns)).to_csv(tmp_path)
        written = of.read_prospects(tmp_path / "added.csv")
        assert written.columns.to_list()[:3] == expected
        assert written.iloc[0].to_list()[:4] == [1, 2, 3, "added"]
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidInputError, match=r"The folder .*taken cannot be created"):
        report(["added"]).to_csv(tmp_path / "taken")


def visible_text(markup: str) -> str:
    """Return the visible text of HTML."""
    return html.unescape(re.sub(r"<[^>]+>", " ", markup))


def test_text_and_html() -> None:
    """Text and HTML show counts, meanings, advice, the error and the notes."""
    made = report(
        ["added"] * 1200 + ["unknown", "in_exclusion_list", "of_tomorrow"],
        detail=[""] * 1200 + ["No response.", "", ""],
        error=AuthenticationError("The token is not accepted."),
        notes=[f"note {number}" for number in [*range(13), 1]],
    )
    assert len(made.notes) == 13
    for view in (repr(made), visible_text(made._repr_html_())):
        assert re.search(r"added\s+1,200\s+In the sequence", view)
        assert re.search(r"unknown\s+1\s+Sent, but no response", view)
        for words in (
            "1,203 rows for the sequence seq_1, sent in 1 chunk",
            *("No response. (1 row)", "report.retry_unknown()", "may have unsubscribed"),
            *("of_tomorrow_and_skipped", "The token is not accepted."),
            *("note 9", "and 3 more, in report.notes"),
        ):
            assert words in view
        # A note that several requests repeat is reported once.
        assert view.count("note 1") == 1


def test_a_report_can_be_pickled() -> None:
    """A pickled report has everything except the connection."""
    error = ValidationFailedError("No.", validation_errors=[ValidationProblem("odd", "told")])
    made = report(["unknown"], error=error, notes=["a note"], retry=threading.Lock)
    back = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    pd.testing.assert_frame_equal(back.frame, made.frame)
    assert repr(back) == repr(made)
    assert back.error.validation_errors == error.validation_errors
    assert back.error.status_code == 422
    with pytest.raises(InvalidInputError, match="cannot send"):
        back.retry_unknown()


def test_text_of_a_run_without_requests() -> None:
    """The text says that nothing was sent."""
    made = report(["would_send", "invalid"], dry_run=True)
    for view in (repr(made), visible_text(made._repr_html_()).strip()):
        assert view.startswith("Nothing was sent")
        assert "Ready to be sent." in view
        assert "ended before their turn" not in view
    assert "Nothing was sent" not in repr(report(["not_sent"]))
    assert "no row was sent" in repr(report(["not_sent"]))
    assert repr(report([])).startswith("0 rows for the sequence seq_1, no row was sent")


def test_html_is_escaped() -> None:
    """Texts of the service and the frame are escaped in HTML."""
    bad = "<script>alert(1)</script>&"
    made = report(
        [bad, "unknown"],
        detail=["", bad],
        sequence_id=bad,
        notes=[f"A note: {bad}"],
        error=of.OutreachError(f"An error: {bad}"),
    )
    assert "<script" not in made._repr_html_()
    assert made._repr_html_().count(html.escape(bad)) == 6


def test_every_status_has_an_explanation() -> None:
    """Each status has an explanation; for most checks, it names the check's override."""
    assert set(MEANINGS) == set(statuses.STATUSES)
    assert all(meaning.means.endswith(".") for meaning in MEANINGS.values())
    for name, override in spec.CHECK_OVERRIDES.items():
        advice = MEANINGS[statuses.status_of_list(name)].next
        # People in the exclusion list may have unsubscribed.
        assert (override in advice) == (override != "ignore_exclusion_list")
