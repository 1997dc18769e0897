"""Convert nested Arrow columns to JSON text and back, and read the buffers of texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa


def write_json_texts(array: pa.Array) -> pa.Array:
    r"""Write each value of a column as JSON; raise NotImplementedError for unsupported values.

    >>> write_json_texts(pa.array([["a\"b", None], None])).to_pylist()
    ['["a\\"b",null]', None]
    """
    values = array.to_pylist()
    kind = str(array.type)
    if "map<" in kind or "extension<" in kind:  # JSON would not restore them
        raise NotImplementedError(f"values of the type {kind}")
    try:
        if "float" in kind or "double" in kind:
            json.dumps(values, allow_nan=False)  # orjson would write NaN as null
        texts = [
            None if value is None else orjson.dumps(value, None, orjson.OPT_PASSTHROUGH_DATETIME)
            for value in values
        ]
    except (TypeError, ValueError) as error:
        raise NotImplementedError(f"values of the type {kind} ({error})") from error
    return pa.array(texts, pa.binary()).cast(pa.string())


def read_json_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Read a column of JSON texts as one Arrow type; raise ValueError if a text does not fit.

    >>> read_json_texts(pa.array(['[1,2]', None]), pa.list_(pa.int64())).to_pylist()
    [[1, 2], None]
    """
    values = [None if text is None else orjson.loads(text) for text in texts.to_pylist()]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(str(error)) from error


def text_buffers(texts: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return the offsets of texts or bytes in the array's buffer, and the buffer, without copying.

    >>> bounds, content = text_buffers(pa.array(["Ada", None, "Bo"])[1:])
    >>> bounds.tolist(), content[bounds[0] : bounds[-1]].tobytes()
    ([3, 3, 5], b'Bo')
    """
    is_large = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    _, offsets, content = texts.buffers()
    if not len(texts) or content is None:
        return np.zeros(len(texts) + 1, np.int64), np.empty(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    return bounds[texts.offset :][: len(texts) + 1], np.frombuffer(content, np.uint8)
