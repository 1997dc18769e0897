"""The base class of results of long calls: shown as a card, written as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from outreach_frames.common.card import Card, as_html, as_text
from outreach_frames.files.csv_file import write_csv_files
from outreach_frames.files.excel import write_sheets


class Result(ABC):
    """Several tables with a summary; subclasses choose the tables to write."""

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """Count the result's rows per kind."""

    @abstractmethod
    def _card(self) -> Card:
        """Return the card for terminals and notebooks."""

    @abstractmethod
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `to_csv` by file name."""

    def _sheets(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `to_excel` by sheet name."""
        return {**self._tables(), "summary": self.summary()}

    def _indexed(self) -> Mapping[str, bool]:
        """Return the sheets whose index is always (True) or never (False) written."""
        return {}

    def to_csv(self, folder: str | Path) -> Path:
        """Write each table to a CSV file named after it.

        Parameters
        ----------
        folder : str or Path
            Created if missing; the tables' files in it are replaced.

        Returns
        -------
        Path
            The folder. Formulas are escaped, see `df.outreach.to_csv`.

        Raises
        ------
        InvalidInputError
            A file cannot be written, or a column has values that CSV cannot hold.
        """
        return write_csv_files(self._tables(), folder)

    def to_excel(self, path: str | Path, *, tz: str = "UTC", progress: bool | None = None) -> Path:
        """Write a workbook with a sheet for each table and the summary.

        Parameters
        ----------
        path : str or Path
            The ``.xlsx`` file to write. An existing file is replaced.
        tz : str
            The time zone to convert zoned times to.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal, for long runs.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidInputError
            The file cannot be written, or a table has more rows than a sheet holds.
        """
        sheets, index = self._sheets(), self._indexed()
        return write_sheets(sheets, path, index=index, tz=tz, progress=progress)

    def __repr__(self) -> str:
        return as_text(self._card())

    def _repr_html_(self) -> str:
        return as_html(self._card())
