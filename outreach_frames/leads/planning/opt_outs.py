"""Find the rows of people who have opted out by a column of their frame, such as Email Opt Out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.value_text import column_texts, compose_texts, strip_texts

# Names of columns, in lower case without blanks and punctuation.
_NAMES: Final = (
    *("optout", "optedout", "emailoptout", "hasoptedoutofemail", "unsubscribed"),
    *("unsubscribedfromallemail", "donotcontact", "donotemail", "dnc"),
)
_TRUE: Final = ("true", "yes", "y", "1", "1.0", "x", "ja", "oui", "si", "sí")


def opt_outs(frame: pd.DataFrame) -> Iterator[tuple[Hashable, pd.Series[Any], list[int]]]:
    """Yield each column of an opt-out's name, with its rows that hold a true value."""
    for place, name in enumerate(frame.columns):
        if "".join(filter(str.isalnum, str(name).casefold())) in _NAMES:
            cells = frame.iloc[:, place]
            texts = pc.utf8_lower(compose_texts(strip_texts(column_texts(cells).texts)))
            is_true = pc.is_in(texts, pa.array(_TRUE, texts.type))
            yield name, cells, np.flatnonzero(is_true.to_numpy(zero_copy_only=False)).tolist()


def opt_out_filter(frame: pd.DataFrame) -> str:
    """Return the expression that leaves out the rows of people who have opted out.

    >>> opt_out_filter(pd.DataFrame({"email": ["ada@x.example"], "Opt-out": ["Yes"]}))
    "df[~df['Opt-out'].isin(['Yes'])]"
    """
    conditions = [
        f"~df[{name!r}].isin({cells.iloc[rows].unique().tolist()!r})"
        for name, cells, rows in opt_outs(frame)
        if rows
    ]
    return f"df[{' & '.join(conditions)}]"
