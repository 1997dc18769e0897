"""An export to a CSV file with a metadata file, for fault injection."""

from __future__ import annotations

from functools import partial

from tests.faults import export

ERRORS = export.ERRORS
cases = partial(export.cases, "people.csv")
recorded = partial(export.recorded, "people.csv")
