"""What the results of long calls have in common: a card that shows them, and tables to write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from outreach_frames.common.card import Card, as_html, as_text
from outreach_frames.files.csv_file import write_csv_files
from outreach_frames.files.excel import write_sheets


class Result(ABC):
    """Several tables with a summary; each class says which are written."""

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """Count what the result has, one row per kind."""

    @abstractmethod
    def _card(self) -> Card:
        """Return what a terminal and a notebook show."""

    @abstractmethod
    def _tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `to_csv` by the names of their files."""

    def _sheets(self) -> dict[str, pd.DataFrame]:
        """Return the tables of `to_excel` by the names of their sheets."""
        return {**self._tables(), "summary": self.summary()}

    def _indexed(self) -> Mapping[str, bool]:
        """Return for which sheets the index is written, where its labels do not tell."""
        return {}

    def to_csv(self, folder: str | Path) -> Path:
        """Write each table to a CSV file of its name.

        Parameters
        ----------
        folder : str or Path
            It is made where it is missing; files of the tables' names in it are replaced.

        Returns
        -------
        Path
            The folder. Formulas are escaped, see `df.outreach.to_csv`.

        Raises
        ------
        InvalidInputError
            When a file cannot be written, or a column holds what CSV cannot.
        """
        return write_csv_files(self._tables(), folder)

    def to_excel(self, path: str | Path, *, tz: str = "UTC") -> Path:
        """Write a workbook with a sheet for each table and the summary.

        Parameters
        ----------
        path : str or Path
            The ``.xlsx`` file to write; one that is there is replaced.
        tz : str
            The zone that times with a zone are converted to.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidInputError
            When the file cannot be written, or a table has more rows than a sheet holds.
        """
        return write_sheets(self._sheets(), path, index=self._indexed(), tz=tz)

    def __repr__(self) -> str:
        return as_text(self._card())

    def _repr_html_(self) -> str:
        return as_html(self._card())
