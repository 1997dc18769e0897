"""The line that declares a CSV file's separator for Excel is not the header."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.errors import InvalidInputError

TEXT = "sep=;\r\nname;email, work\r\nAda;ada@x.example\r\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (TEXT, None),
        (f"\ufeff{TEXT}", None),
        (TEXT.replace("\r\n", "\n").upper().replace("NAME", "name"), None),
        (f'"sep=;"{TEXT.removeprefix("sep=;")}', None),
        (f"\ufeff{TEXT}", "utf-16"),
        (TEXT.replace(";", "\t"), None),
    ],
)
def test_a_declared_separator(text: str, encoding: str | None, tmp_path: Path) -> None:
    """The declared separator is used, whatever other separators the header has."""
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode(encoding or "utf-8"))
    found = of.read_prospects(path, encoding=encoding)
    assert [name.lower() for name in found.columns] == ["name", "email, work"]
    assert [cell.lower() for cell in found.iloc[0]] == ["ada", "ada@x.example"]


def test_only_the_exact_line_declares_a_separator(tmp_path: Path) -> None:
    """Only the exact line declares a separator; line numbers in errors include the line."""
    path = tmp_path / "x.csv"
    pd.DataFrame({"sep=x": ["a"], "b": ["c"]}).to_csv(path, index=False)
    assert of.read_prospects(path).columns.tolist() == ["sep=x", "b"]
    path.write_text('sep=;\na;b\nc;"d\n')
    with pytest.raises(InvalidInputError, match="line 3"):
        of.read_prospects(path)
