"""Format the texts of plots: numbers and names."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable
from os.path import commonprefix
from typing import Final

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import numbered

NOT_GIVEN: Final = "not given"
MINUS: Final = "\N{MINUS SIGN}"
_MIN_NAME: Final = 6
_MAX_NAME: Final = 36
_MAX_LONG: Final = 120


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
    return _escape(_cut(_single_line(name), most))


def unique_names(names: Iterable[object], width: Callable[[str], float], most: float) -> list[str]:
    r"""Return names whose `width` is at most `most`; different names stay different.

    Names that would be cut to the same text have a second line that starts with the difference;
    a repeated name gets a number.

    >>> unique_names(["Acme Norway Holding", "Acme Sweden Holding", "Ivory", "Ivory"], len, 9)
    ['Acme\nNorw…ing', 'Acme\nSwed…ing', 'Ivory', 'Ivory (2)']
    """

    def fit(text: str) -> str:
        length = len(text)
        while length > _MIN_NAME and width(_cut(text, length)) > most:
            length -= 1
        return _cut(text, length)

    whole = [_cut(_single_line(name), _MAX_LONG) for name in names]
    labels = [fit(text) for text in whole]
    for label in {label for label in labels if labels.count(label) > 1} - set(whole):
        rows = [row for row, other in enumerate(labels) if other == label]
        start = commonprefix([whole[row] for row in rows])  # noqa: RUF071 - these are not paths
        start = start[: start.rfind(" ") + 1] or start
        for row in rows:
            labels[row] = f"{fit(start.strip())}\n{fit(whole[row][len(start) :])}".strip()
    return numbered(map(_escape, labels))


def _single_line(name: object) -> str:
    text = "" if is_missing(name) else " ".join(str(name).split())
    return "".join(mark for mark in text if unicodedata.category(mark)[0] != "C") or NOT_GIVEN


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[1 - most // 2 :]}"


def _escape(text: str) -> str:
    """Escape dollar signs, because matplotlib would read text between two of them as a formula."""
    return text.replace("$", r"\$") if text.count("$") > 1 else text
