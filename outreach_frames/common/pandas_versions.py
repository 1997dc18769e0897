"""What differs between the supported versions of pandas."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

# Pandas 2 reads the name "str" as object, and writes missing values as the text "nan".
STR: Final[Any] = pd.StringDtype(na_value=np.nan)
_COPIES_ON_WRITE: Final = int(pd.__version__.partition(".")[0]) >= 3


def dtype_named(name: str) -> Any:
    """Return the dtype with a name.

    >>> dtype_named("str") == STR
    True
    """
    return STR if name == "str" else pd.api.types.pandas_dtype(name)


def copy_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Copy a frame, so that later changes of the frame do not reach the copy."""
    return frame.copy(deep=not _COPIES_ON_WRITE)
