"""The base class of the results of long calls: displayed as a card, saved as tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import pandas as pd

from outreach_frames.common.card import Card, as_html, as_text
from outreach_frames.files.csv_file import write_csv_files
from outreach_frames.files.excel import write_sheets


class Result(ABC):
    """A result of several tables with a summary; subclasses choose which tables are saved."""

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """Count the rows of the result per status or kind."""

    @abstractmethod
    def _card(self) -> Card:
        """Return the card to display in terminals and notebooks."""

    @abstractmethod
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that `to_csv` writes, by file name."""

    def _sheets(self) -> dict[str, pd.DataFrame]:
        """Return the tables that `to_excel` writes, by sheet name."""
        return {**self._tables(), "summary": self.summary()}

    def to_csv(self, folder: str | Path) -> Path:
        """Write each table to a CSV file with the table's name.

        Parameters
        ----------
        folder : str or Path
            The folder to write to; it is created if missing. Existing files with the same names are
            replaced.

        Returns
        -------
        Path
            The path of the folder. Formulas in the files are escaped; see `df.outreach.to_csv`.

        Raises
        ------
        InvalidInputError
            A file cannot be written, or a column has values that CSV cannot hold.
        """
        return write_csv_files(self._tables(), folder)

    def to_excel(self, path: str | Path, *, tz: str = "UTC", progress: bool | None = None) -> Path:
        """Write a workbook with one sheet per table and a sheet with the summary.

        Parameters
        ----------
        path : str or Path
            The path of the ``.xlsx`` file. An existing file is replaced.
        tz : str
            The time zone for times with a zone.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal, for long runs.

        Returns
        -------
        Path
            The path of the file.

        Raises
        ------
        InvalidInputError
            The file cannot be written, or a table has more rows than a sheet holds.
        """
        return write_sheets(self._sheets(), path, tz=tz, progress=progress)

    def __repr__(self) -> str:
        return as_text(self._card())

    def _repr_html_(self) -> str:
        return as_html(self._card())
