"""Format the texts of plots: numbers and names."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Final

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import numbered

NOT_GIVEN: Final = "not given"
MINUS: Final = "\N{MINUS SIGN}"
_MAX_NAME: Final = 36
_MAX_LONG: Final = 72


def count_text(value: float) -> str:
    """Format a count with thousands separators.

    >>> count_text(12345), count_text(2.5)
    ('12,345', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def share_text(value: float, decimals: int = 0) -> str:
    """Format a share in percent, small shares with one significant digit.

    >>> share_text(0.256), share_text(0.0031), share_text(0.00001), share_text(0)
    ('26%', '0.3%', '<0.01%', '0%')
    >>> share_text(0.256, 1), share_text(0.0097, 1), share_text(0.0003, 1)
    ('25.6%', '1.0%', '0.03%')
    """
    percent = value * 100
    if 0 < percent < 0.01:
        return "<0.01%"
    is_small = 0 < percent < 10**-decimals
    return f"{percent:.1g}%" if is_small else f"{percent:.{decimals}f}%"


def share_decimals(shares: Iterable[float]) -> int:
    """Return 1 if whole percents would make different shares equal or change their sum, else 0.

    >>> share_decimals([0.25, 0.5]), share_decimals([0.254, 0.246]), share_decimals([1 / 3] * 3)
    (0, 1, 1)
    """
    known = [round(share, 9) for share in shares if not math.isnan(share)]
    shown = [float(share_text(share).strip("<%")) for share in known]
    is_exact = len(set(shown)) == len(set(known)) and round(sum(shown)) == round(100 * sum(known))
    return 0 if is_exact else 1


def share_tick(value: float) -> str:
    """Format the share at an axis tick without rounding.

    >>> share_tick(0.07), share_tick(0.005)
    ('7%', '0.5%')
    """
    return f"{value * 100:.6g}%"


def signed_text(value: float) -> str:
    """Format a change with a sign; format zero without a sign.

    >>> signed_text(1200), signed_text(1), signed_text(-1) == f"{MINUS}1", signed_text(0)
    ('+1,200', '+1', True, '0')
    """
    sign = "+" if value > 0 else MINUS if value < 0 else ""
    return f"{sign}{count_text(abs(value))}"


def short_name(name: object, most: int = _MAX_NAME) -> str:
    """Return a name as a single line; cut the middle of long names, because ends often differ.

    >>> short_name("Engineering and agricultural machinery of Northern Europe, Germany")
    'Engineering and ag…n Europe, Germany'
    """
    text = "" if is_missing(name) else str(name)
    text = " ".join(text.split())
    text = "".join(mark for mark in text if unicodedata.category(mark)[0] != "C")
    if len(text) > most:
        text = f"{text[: most // 2]}…{text[1 - most // 2 :]}"
    # Matplotlib would read text between two dollar signs as a formula.
    text = text.replace("$", r"\$") if text.count("$") > 1 else text
    return text or NOT_GIVEN


def unique_names(names: Iterable[object]) -> list[str]:
    """Return short names; a repeated name gets a number that makes it unique.

    Names are cut less if that keeps different names apart.
    """
    whole = list(names)
    short, longer = ([short_name(name, most) for name in whole] for most in (_MAX_NAME, _MAX_LONG))
    return numbered(longer if len(set(longer)) > len(set(short)) else short)
