"""Texts on plots: readable names, numbers, and characters that the fonts at hand can draw."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib import font_manager

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.warnings import warn

NOT_GIVEN: Final = "not given"
_ABBREVIATIONS: Final = frozenset({"erp", "hr", "it", "itsm", "ui", "ux"})
# Characters; what is behind them would be cut in any case, but after slow work on each of them.
_LONGEST: Final = 400
_PERCENT_FORMAT: Final = "{:.12g}%"
_STAND_IN: Final = "?"
_SHOWN_CHARACTERS: Final = 5
# Families with characters that matplotlib's own lacks, as systems bring them.
_OTHER_FAMILIES: Final = (
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


def readable(name: str) -> str:
    """Return a name of the interface as a person writes it.

    >>> readable("human_resources"), readable("it_audit_it_compliance")
    ('Human resources', 'IT audit IT compliance')
    """
    words = [word.upper() if word in _ABBREVIATIONS else word for word in name.split("_")]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def count_text(value: float) -> str:
    """Return a count with separators.

    >>> count_text(12345), count_text(2.5)
    ('12,345', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def share_text(value: float) -> str:
    """Return a share in whole percent, and a small one as what it is below.

    >>> share_text(0.256), share_text(0.001), share_text(0)
    ('26%', '<1%', '0%')
    """
    return "<1%" if 0 < value < 0.005 else f"{value:.0%}"


def share_tick(value: float) -> str:
    """Return a share exactly, for an axis.

    >>> share_tick(0.07), share_tick(0.005)
    ('7%', '0.5%')
    """
    return _PERCENT_FORMAT.format(round(value * 100, 6))


class Number(NamedTuple):
    """How a number reads at a bar and on the axis, and whether only whole ones make sense."""

    at_bar: Callable[[float], str]
    on_axis: Callable[[float], str]
    whole: bool


COUNT: Final = Number(count_text, count_text, whole=True)
SHARE: Final = Number(share_text, share_tick, whole=False)


def drawable(texts: Iterable[object]) -> list[str]:
    """Return texts on one line that any font draws; warn once of characters that none has.

    Missing texts read "not given". No plot has room for more than 400 characters of a text.
    """
    plain = [_plain(text) for text in texts]
    lacking = {mark for text in plain for mark in text} - _known(fallback_families(plain))
    if lacking:
        marks = sorted(lacking)[:_SHOWN_CHARACTERS]
        more = ", …" if len(lacking) > len(marks) else ""
        warn(
            f"The fonts on this machine lack {len(lacking):,} of the characters in labels "
            f"({', '.join(marks)}{more}), which are drawn as {_STAND_IN}. "
            "Install a font that has them, such as Noto Sans CJK, "
            "and name it in matplotlib.rcParams['font.family']."
        )
        table = {ord(mark): _STAND_IN for mark in lacking}
        plain = [text.translate(table) for text in plain]
    return plain


def shorten(text: str, most: int) -> str:
    """Return a text to draw, with "…" for what is behind so many characters.

    >>> shorten("Engineering technical", 12), shorten("Legal", 12)
    ('Engineering…', 'Legal')
    """
    if len(text) > most:
        text = f"{text[: max(most - 1, 1)].rstrip()}…"
    return without_formulas(text)


def without_formulas(text: str) -> str:
    """Return a text in which no two dollar signs enclose a formula."""
    return text.replace("$", r"\$") if text.count("$") > 1 else text


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts of which no two are alike: a second one gets a number.

    >>> unique(["Sales", "Sales", "Legal"])
    ['Sales', 'Sales (2)', 'Legal']
    """
    taken: dict[str, None] = {}
    for text in texts:
        name, number = text, 1
        while name in taken:
            number += 1
            name = f"{text} ({number})"
        taken[name] = None
    return list(taken)


def fallback_families(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the font families for these texts: the style's own, and others where it lacks some."""
    families = tuple(mpl.rcParams["font.family"])
    lacking = {mark for text in texts for mark in text} - _known(families)
    installed = font_manager.fontManager.get_font_names() if lacking else []
    for family in _OTHER_FAMILIES:
        if family in installed and lacking & _characters(family):
            lacking -= _characters(family)
            families = (*families, family)
    return families


def _plain(text: object) -> str:
    if is_missing(text):
        return NOT_GIVEN
    words = str(text).lstrip()[:_LONGEST].encode("utf-8", "replace").decode().split()
    shown = "".join(mark for mark in " ".join(words) if unicodedata.category(mark)[0] != "C")
    return shown or NOT_GIVEN


def _known(families: tuple[str, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(_characters(family) for family in families))


def _characters(family: str) -> frozenset[str]:
    return _characters_of_file(font_manager.findfont(font_manager.FontProperties(family=[family])))


@cache
def _characters_of_file(path: Any) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
