"""Format texts for plots: names, numbers, and characters that the fonts may lack."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import font_manager

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.warnings import warn

NOT_GIVEN: Final = "not given"
# Texts with more characters never fit on a plot, and are slow to process.
_MAX_CHARACTERS: Final = 400
_MAX_DECIMALS: Final = 6
_PERCENT_FORMAT: Final = "{:.12g}%"
_REPLACEMENT: Final = "?"
_LISTED_CHARACTERS: Final = 5
# Fonts of common operating systems with characters that matplotlib's default font lacks.
_FALLBACK_FAMILIES: Final = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "Noto Sans KR",
    "Source Han Sans SC",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "PingFang SC",
    "PingFang HK",
    "Hiragino Sans",
    "Hiragino Sans GB",
    "Apple SD Gothic Neo",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "IPAexGothic",
    "Noto Sans Thai",
    "Noto Sans Devanagari",
    "Nirmala UI",
    "Arial Unicode MS",
    "Segoe UI Symbol",
)


def count_text(value: float) -> str:
    """Format a count with thousands separators.

    >>> count_text(12345), count_text(2.5)
    ('12,345', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def share_text(value: float, decimals: int = 0) -> str:
    """Format a share in percent; format a share that would round to 0 as "<1%".

    >>> share_text(0.256), share_text(0.001), share_text(0.0031, 1), share_text(0)
    ('26%', '<1%', '0.3%', '0%')
    """
    smallest = 10.0**-decimals
    if 0 < value * 100 <= smallest / 2:
        return f"<{smallest:.{decimals}f}%"
    return f"{value:.{decimals if value else 0}%}"


def share_decimals(shares: Any) -> int:
    """Return how many decimals the largest share needs in percent.

    >>> share_decimals([0.25, 0.001]), share_decimals([0.003, 0.001]), share_decimals([])
    (0, 1, 0)
    """
    largest = np.nanmax(np.abs(np.asarray(shares, dtype=float)), initial=0) * 100
    return min(max(math.ceil(-math.log10(largest)), 0), _MAX_DECIMALS) if largest else 0


def share_tick(value: float) -> str:
    """Format the share at an axis tick without rounding.

    >>> share_tick(0.07), share_tick(0.005)
    ('7%', '0.5%')
    """
    return _PERCENT_FORMAT.format(round(value * 100, 6))


class Number(NamedTuple):
    """The number formats for bars and for axis ticks."""

    at_bar: Callable[[float], str]
    on_axis: Callable[[float], str]
    whole: bool  # whether ticks are whole numbers

    def fitted(self, values: Any) -> Number:
        """Return the format for these values: shares get decimals if the largest is below 1%."""
        if self.at_bar is not share_text:
            return self
        return self._replace(at_bar=partial(share_text, decimals=share_decimals(values)))


COUNT: Final = Number(count_text, count_text, whole=True)
SHARE: Final = Number(share_text, share_tick, whole=False)


def drawable(texts: Iterable[object]) -> list[str]:
    """Convert texts to single lines; replace characters that no font has, and warn of them."""
    plain = [_plain(text) for text in texts]
    missing = _lacking(plain, fallback_families(plain))
    if missing:
        marks = sorted(missing)[:_LISTED_CHARACTERS]
        more = ", …" if len(missing) > len(marks) else ""
        warn(
            f"The installed fonts lack {len(missing):,} of the characters in labels "
            f"({', '.join(marks)}{more}); the plot shows {_REPLACEMENT} instead. "
            "Install a font with these characters, such as Noto Sans CJK, "
            "and add it to matplotlib.rcParams['font.family']."
        )
        table = {ord(mark): _REPLACEMENT for mark in missing}
        plain = [text.translate(table) for text in plain]
    return plain


def shorten(text: str, length: int) -> str:
    """Cut a text to `length` characters, and escape formulas.

    >>> shorten("Engineering technical", 12), shorten("Legal", 12)
    ('Engineering…', 'Legal')
    """
    if len(text) > length:
        text = f"{text[: max(length - 1, 1)].rstrip()}…"
    return escape_formulas(text)


def escape_formulas(text: str) -> str:
    """Escape dollar signs, because matplotlib would read text between two signs as a formula."""
    return text.replace("$", r"\$") if text.count("$") > 1 else text


def unique(texts: Iterable[str]) -> list[str]:
    """Append numbers to repeated texts, so that all texts are unique."""
    taken: dict[str, None] = {}
    for text in texts:
        name, number = text, 1
        while name in taken:
            number += 1
            name = f"{text} ({number})"
        taken[name] = None
    return list(taken)


def fallback_families(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the font families of the style, plus fallback families for missing characters."""
    families = tuple(mpl.rcParams["font.family"])
    missing = _lacking(texts, families)
    installed = font_manager.fontManager.get_font_names() if missing else []
    for family in _FALLBACK_FAMILIES:
        if family in installed and missing & _characters(family):
            missing -= _characters(family)
            families = (*families, family)
    return families


def _plain(text: object) -> str:
    if is_missing(text):
        return NOT_GIVEN
    words = str(text).lstrip()[:_MAX_CHARACTERS].encode("utf-8", "replace").decode().split()
    shown = "".join(mark for mark in " ".join(words) if unicodedata.category(mark)[0] != "C")
    return shown or NOT_GIVEN


def _lacking(texts: Iterable[str], families: tuple[str, ...]) -> set[str]:
    """Return the characters of the texts that no font of these families has."""
    # Start with the texts' few characters, because copying a font's many characters is slow.
    return {mark for text in texts for mark in text}.difference(*map(_characters, families))


def _characters(family: str) -> frozenset[str]:
    return _characters_in_file(font_manager.findfont(font_manager.FontProperties(family=[family])))


@cache
def _characters_in_file(path: Any) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
