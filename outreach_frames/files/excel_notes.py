"""Keep the dtypes of a workbook's columns in its custom properties."""

from __future__ import annotations

import base64
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pandas.api.types import is_object_dtype

from outreach_frames.errors import InvalidInputError
from outreach_frames.files.csv_dtypes import Model, encode

PROPERTY: Final = "outreach_frames"
_PART: Final = "docProps/custom.xml"
_TEXTS: Final = re.compile(rb'name="outreach_frames \d+"[^>]*>\s*<(?:\w+:)?lpwstr>([^<]*)<')
# The maximum length of a text property in Excel.
_LONGEST: Final = 255
# Valid notes are shorter; longer notes are cut off, and then rejected as damaged.
_MAX_BYTES: Final = 64 << 20


def property_texts(sheets: Mapping[str, Mapping[str, Any]], tz: str) -> list[str]:
    """Encode the notes of all sheets, and the time zone, as texts for custom properties."""
    notes = json.dumps({"tz": tz, "sheets": sheets}).encode()
    text = base64.b64encode(zlib.compress(notes)).decode()
    return [text[start : start + _LONGEST] for start in range(0, len(text), _LONGEST)]


def read_properties(package: zipfile.ZipFile) -> Any:
    """Return a workbook's notes; if another program wrote the workbook, they have no sheets."""
    part = package.read(_PART) if _PART in package.namelist() else b""
    text = b"".join(_TEXTS.findall(part))
    notes = zlib.decompressobj().decompress(base64.b64decode(text), _MAX_BYTES) if text else b""
    return json.loads(notes) if notes else {"sheets": {}}


def model_of(column: pd.Series[Any], lists: pa.Array | None, title: str) -> Model | None:
    """Return the model that restores a column from its cells; return None for mixed types."""
    if lists is not None:
        column = pd.Series(pd.arrays.ArrowExtensionArray(lists.slice(0, 0)))
    elif not is_object_dtype(column.dtype):
        if isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.ordered:
            # Unused categories may be personal data that the sheet does not show.
            column = column.cat.remove_unused_categories()
        column = column.iloc[:0]
    try:
        model = encode(column, title)[1]
    except InvalidInputError:
        return None
    return None if (model.schema.field(0).metadata or {}).get(b"written") == b"json" else model
