"""Child tables of lists: Arrow gives the same result as reading objects one by one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.reading.flatten import records_frame
from tests.reading.pages import frame_of
from tests.reading.people_strategies import odd_people, people

ODD_EXPERIENCES = [
    {"title": "VP", "start_date": "2020-01-31", "current": True, "level": None},
    None,
    {"level": 2, "end_date": "soon", "end_date_raw": "a name that is taken"},
]


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(people() | odd_people(), min_size=1, max_size=3),
    st.sampled_from(["numpy_nullable", "pyarrow"]),
)
@example([{"id": "1", "experiences": ODD_EXPERIENCES}], "pyarrow")
@example([{"id": "1", "experiences": [{"title": "CEO", "company": {"id": "x"}}]}], "pyarrow")
@example([{"id": "1", "languages": [{"language": "Czech"}]}, {"id": "2"}], "numpy_nullable")
def test_entries_equal_their_objects(found: list[dict[str, Any]], backend: Any) -> None:
    """Fields, dtypes, unreadable dates and undocumented members equal those of the objects."""
    frame = frame_of(found, backend)
    for name, fields in [("experiences", spec.EXPERIENCE), ("languages", spec.LANGUAGE)]:
        entries = [entry for cell in frame[name].dropna() for entry in cell]
        table = getattr(frame.outreach, name)()
        expected = records_frame(entries, fields)
        pd.testing.assert_frame_equal(table.drop(columns=["person_id", "position"]), expected)


@pytest.mark.parametrize("cells", [[None, None], [float("nan")] * 2, []])
def test_lists_that_are_all_missing_have_no_entries(cells: list[Any]) -> None:
    """A column with only missing lists, of any dtype, makes an empty table with all columns."""
    frame = pd.DataFrame({"id": ["1", "2"][: len(cells)], "experiences": cells})
    assert list(frame.outreach.experiences())[2:] == [field.name for field in spec.EXPERIENCE]
    assert frame.outreach.experiences().empty
