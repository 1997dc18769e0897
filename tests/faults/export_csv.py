"""An export to a CSV file, which has notes beside it: what the faults strike."""

from __future__ import annotations

from functools import partial

from tests.faults import export

ERRORS = export.ERRORS
cases = partial(export.cases, "people.csv")
recorded = partial(export.recorded, "people.csv")
