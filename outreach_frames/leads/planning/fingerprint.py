"""A submission's fingerprint: digests that are equal for equal submissions and reveal nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa


def digests(
    *,
    sequence_id: str,
    settings: Mapping[str, Any],
    rows: int,
    positions: np.ndarray[Any, Any],
    leads: Sequence[pa.Buffer],
    unsent: pd.DataFrame,
) -> Mapping[str, str]:
    """Return a digest of each part of a submission, so that a changed part can be named."""
    # The wording of a detail may change with a library, what becomes of the row does not.
    settled = unsent[["position", "status", "error_code"]].to_dict("list")
    lines = [piece for lead in leads for piece in (b"\n", lead)][1:]
    return MappingProxyType(
        {
            "sequence": _digest([sequence_id.encode()]),
            "settings": _digest([orjson.dumps(dict(settings), option=orjson.OPT_SORT_KEYS)]),
            "rows": _digest(
                [orjson.dumps([rows, settled])], [positions.astype("<i8").tobytes()], lines
            ),
        }
    )


def _digest(*parts: Sequence[bytes | pa.Buffer]) -> str:
    """Take the digest of parts, each of which may be in pieces."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % sum(map(len, part)))
        for piece in part:
            digest.update(piece)
    return digest.hexdigest()
