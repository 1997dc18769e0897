"""Parse JSON without rounding numbers."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import Any, Final

import msgspec

LARGEST_EXACT: Final = 2**53
LARGEST_INT64: Final = 2**63 - 1
_INT64_DIGITS: Final = len(str(LARGEST_INT64))
_DIGITS_TO_ZERO: Final = bytes.maketrans(b"123456789", b"000000000")


class NumberText(str):
    """The text of a JSON number that does not fit into 64 bits."""

    __slots__ = ()


class LossyParseError(ValueError):
    """Raised if the fast reader cannot read a response or could change a value."""


def parse_json(text: str) -> Any:
    """Parse JSON; a number that does not fit into 64 bits becomes a `NumberText`."""
    return json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=NumberText)


def parse_body(body: bytes) -> Any:
    """Parse JSON like `parse_json`, and faster if no number has 19 digits."""
    if b"0" * _INT64_DIGITS not in body.translate(_DIGITS_TO_ZERO):
        with suppress(ValueError, RecursionError):
            return msgspec.json.decode(body)
    return parse_json(body.decode())


def _integer(text: str) -> int | NumberText:
    if len(text) < _INT64_DIGITS:
        return int(text)
    if len(text) > _INT64_DIGITS + 1:
        return NumberText(text)
    number = int(text)
    return number if -LARGEST_INT64 - 1 <= number <= LARGEST_INT64 else NumberText(text)


def _number(text: str) -> float | NumberText:
    number = float(text)
    return number if math.isfinite(number) else NumberText(text)


def without_lone_surrogates(value: Any) -> Any:
    r"""Replace lone surrogates, which UTF-8 cannot encode, by their escapes (``\ud800``)."""
    if isinstance(value, str):
        escaped = value.encode("utf-8", "backslashreplace").decode("utf-8")
        return NumberText(escaped) if isinstance(value, NumberText) else escaped
    if isinstance(value, list):
        return [without_lone_surrogates(element) for element in value]
    if isinstance(value, dict):
        return {
            without_lone_surrogates(key): without_lone_surrogates(member)
            for key, member in value.items()
        }
    return value
