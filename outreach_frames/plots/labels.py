"""Format the texts of plots: numbers, names, departments and company sizes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from outreach_frames.common.arguments import is_missing
from outreach_frames.common.text import numbered, readable

NOT_GIVEN: Final = "not given"
MINUS: Final = "\N{MINUS SIGN}"
_MAX_NAME: Final = 36

# Departments whose name in the interface is no good label.
DEPARTMENT_LABELS: Final = {
    "engineering_technical": "Engineering",
    "medical_health": "Medical and health",
}


def department_label(department: str) -> str:
    """Return what people call a department.

    >>> department_label("medical_health"), department_label("senior_leadership")
    ('Medical and health', 'Senior leadership')
    """
    return DEPARTMENT_LABELS.get(department) or readable(department)


def count_text(value: float) -> str:
    """Format a count with thousands separators.

    >>> count_text(12345), count_text(2.5)
    ('12,345', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def share_text(value: float) -> str:
    """Format a share in percent, below 1% with one significant digit.

    >>> share_text(0.256), share_text(0.0031), share_text(0.00001), share_text(0)
    ('26%', '0.3%', '<0.01%', '0%')
    """
    percent = value * 100
    if 0 < percent < 0.01:
        return "<0.01%"
    return f"{percent:.1g}%" if 0 < percent < 1 else f"{percent:.0f}%"


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


def short_name(name: object) -> str:
    """Return a name as a single line; cut the middle of long names, because ends often differ.

    >>> short_name("Engineering and agricultural machinery of Northern Europe, Germany")
    'Engineering and ag…n Europe, Germany'
    """
    text = "" if is_missing(name) else str(name)
    text = " ".join(text.split())
    text = "".join(mark for mark in text if unicodedata.category(mark)[0] != "C")
    if len(text) > _MAX_NAME:
        text = f"{text[: _MAX_NAME // 2]}…{text[1 - _MAX_NAME // 2 :]}"
    # Matplotlib would read text between two dollar signs as a formula.
    text = text.replace("$", r"\$") if text.count("$") > 1 else text
    return text or NOT_GIVEN


def unique_names(names: Iterable[object]) -> list[str]:
    """Return short names; a repeated name gets a number that makes it unique."""
    return numbered(map(short_name, names))
