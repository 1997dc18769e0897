"""`df.outreach`: what can be done with a frame, as methods on it; delegates, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd

from outreach_frames import analysis, children, export


@pd.api.extensions.register_dataframe_accessor("outreach")
class OutreachAccessor:
    """What the toolkit can do with a frame; the frame itself is never changed.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> people.outreach.headcount().shape[1]
    4
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def to_csv(
        self,
        path: str | Path,
        *,
        formulas: Literal["escape", "keep"] = "escape",
        excel: bool = False,
    ) -> Path:
        return export.write_csv(self._frame, path, formulas=formulas, excel=excel)

    def to_parquet(self, path: str | Path) -> Path:
        return export.write_parquet(self._frame, path)

    def companies(self) -> pd.DataFrame:
        return analysis.companies(self._frame)

    def headcount(self, level: analysis.Level = "department") -> pd.DataFrame:
        return analysis.headcount(self._frame, level)

    def experiences(self) -> pd.DataFrame:
        return children.experiences(self._frame)

    def educations(self) -> pd.DataFrame:
        return children.educations(self._frame)

    def languages(self) -> pd.DataFrame:
        return children.languages(self._frame)

    def technologies(self) -> pd.DataFrame:
        return children.technologies(self._frame)

    def locations(self) -> pd.DataFrame:
        return children.locations(self._frame)

    to_csv.__doc__ = export.write_csv.__doc__
    to_parquet.__doc__ = export.write_parquet.__doc__
    companies.__doc__ = analysis.companies.__doc__
    headcount.__doc__ = analysis.headcount.__doc__
    experiences.__doc__ = children.experiences.__doc__
    educations.__doc__ = children.educations.__doc__
    languages.__doc__ = children.languages.__doc__
    technologies.__doc__ = children.technologies.__doc__
    locations.__doc__ = children.locations.__doc__
