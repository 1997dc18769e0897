"""The bytes of many texts as they lie in Arrow's memory, to look at all of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def text_buffers(texts: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Return where texts begin and end, and the bytes that they lie in; nothing is copied.

    Parameters
    ----------
    texts : pyarrow.Array
        Text or bytes.

    Returns
    -------
    bounds : numpy.ndarray
        Each text's first byte, and the end of the last; a missing text has none.
    content : numpy.ndarray
        The bytes; there may be others before and behind.

    Examples
    --------
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
