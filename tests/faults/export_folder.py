"""An export to a folder of Parquet parts, for fault injection."""

from __future__ import annotations

from functools import partial

from tests.faults import export

ERRORS = export.ERRORS
cases = partial(export.cases, "people")
recorded = partial(export.recorded, "people")
