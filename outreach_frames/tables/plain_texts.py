"""Arrow values as the one text that `json_values.plain_text_of` gives, a column at a time."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.tables.json_columns import with_elements, write_json_texts
from outreach_frames.tables.json_values import LARGEST_EXACT, LossyParseError

# Python writes smaller fractions with an exponent, Arrow larger ones.
_SMALLEST, _LARGEST = 1e-4, 1e10


def plain_texts(array: pa.Array) -> pa.Array:
    """Write every value of a column as text: JSON with names sorted and null members left out.

    Parameters
    ----------
    array : pyarrow.Array
        Structs and lists of text, numbers and booleans.

    Returns
    -------
    pyarrow.Array
        Text; missing where the value is missing.

    Raises
    ------
    LossyParseError
        When a number may have been rounded, or would be written in another way.

    Examples
    --------
    >>> plain_texts(pa.array([{"b": "x", "a": 1.0, "c": None}, None])).to_pylist()
    ['{"a":1,"b":"x"}', None]
    """
    kind = array.type
    if pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_list(kind):
        elements = with_elements(array, lambda inside: plain_texts(inside).fill_null("null"))
        texts = pc.binary_join_element_wise("[", pc.binary_join(elements, ","), "]", "")
    elif pa.types.is_struct(kind):
        members = dict(zip([field.name for field in kind], array.flatten(), strict=True))
        pieces = [
            pc.binary_join_element_wise(
                f"{json.dumps(name, ensure_ascii=False)}:", plain_texts(members[name]), ",", ""
            ).fill_null("")
            for name in sorted(members)
        ]
        joined = pc.utf8_rtrim(pc.binary_join_element_wise(*pieces, ""), ",")
        texts = pc.binary_join_element_wise("{", joined, "}", "")
    else:
        return write_json_texts(array)
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, texts.type))


def _numbers(array: pa.Array) -> pa.Array:
    size = pc.abs(array)
    whole = pc.equal(pc.floor(array), array)
    is_short = pc.and_(pc.greater_equal(size, _SMALLEST), pc.less(size, _LARGEST))
    is_plain = pc.if_else(whole, pc.less(size, float(LARGEST_EXACT)), is_short)
    if not pc.all(is_plain, min_count=0).as_py():
        raise LossyParseError
    integers = pc.if_else(whole, array, 0.0).cast(pa.int64()).cast(pa.string())
    return pc.if_else(whole, integers, array.cast(pa.string()))
