"""Guesses which columns of a frame identify its leads, from their names and then their cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from outreach_frames import spec
from outreach_frames.common.text import quoted
from outreach_frames.identity.keys import SIMPLE_EMAIL
from outreach_frames.leads.planning.mapping import EMAIL, PROFNET_URL
from outreach_frames.leads.planning.syntax import SIMPLE_URL

# How many cells of a column are examined, and how long they may be.
_CELLS: Final = 500
_CHARACTERS: Final = 300
# The share of cells that must look right in a column with a fitting name.
_ENOUGH: Final = 0.3
# The share from which a column fits whatever its name is.
_PLENTY: Final = 0.8
# Two columns whose shares differ by less fit equally well.
_SAME: Final = 0.2

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
_EMAIL_WORDS: Final = {
    word + ending for word in ("email", "mail") for ending in ("", "s", "address", "adresse")
}
_FILLERS: Final = {"address", "addresses", "adresse", "id", "optional", "primary", "main"}
_LINK_WORDS: Final = {"url", "urls", "link", "uri", "page", "public", "optional", "web"}
# Words of columns about addresses or profiles, or with those of somebody else.
_NOT_EMAIL: Final = (
    "status sent opened open clicked replied bounced date time count number valid verified "
    "verification domain type provider limit template subject body text opt consent permission "
    "subscribed unsubscribed score confidence quality source hash owner sender manager assistant "
    "creator created by cc bcc list campaign frequency preference last"
)
_NOT_PROFILE: Final = (
    "company organisation organization school investor image photo picture avatar logo id name "
    "type status views score strength completeness headline about text description owner sender "
    "manager created by date count"
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The guessed column, None where that is not clear, and what to know about it."""

    column: str | None = None
    note: str = ""


def guess_columns(
    frame: pd.DataFrame, columns: Sequence[str], networks: Collection[str] = (spec.NETWORK_NAME,)
) -> dict[str, Guess]:
    """Guess which columns hold the leads' addresses and profile URLs.

    Parameters
    ----------
    frame : DataFrame
        The leads. Where several names fit, the share of cells that look right decides.
    columns : sequence of str
        The columns that can be chosen.
    networks : collection of str
        The names of the professional network.

    Returns
    -------
    dict of str to Guess
        For `email` and `profnet_url`. No column is guessed where two fit equally well.

    Examples
    --------
    >>> frame = pd.DataFrame({"Name": ["Ada"], "E-Mail": ["ada@example.org"]})
    >>> guess_columns(frame, list(frame.columns))["email"].column
    'E-Mail'
    """
    emails = {name: _share(frame[name], SIMPLE_EMAIL) for name in columns}
    urls = {name: _share(frame[name], SIMPLE_URL) for name in columns}
    by_name = _guess(EMAIL, columns, _email_rank, emails)
    if by_name == Guess():
        by_name = _by_content(columns, emails)
    return {
        EMAIL: by_name,
        PROFNET_URL: _guess(PROFNET_URL, columns, lambda name: _url_rank(name, networks), urls),
    }


def _guess(
    what: str,
    columns: Sequence[str],
    rank: Callable[[str], int | None],
    shares: Mapping[str, float | None],
) -> Guess:
    ranks = {name: place for name in columns if (place := rank(name)) is not None}
    if not ranks:
        return Guess()
    fitting = [name for name in ranks if (shares[name] or 0) >= _ENOUGH]
    fitting = fitting or [name for name in ranks if shares[name] is None]
    if not fitting:
        named = _listed(ranks)
        return Guess(None, f"No column is chosen for {what}: the cells of {named} look different.")
    best = [name for name in fitting if ranks[name] == min(map(ranks.__getitem__, fitting))]
    best.sort(key=lambda name: -(shares[name] or 0))
    if len(best) > 1 and (shares[best[0]] or 0) - (shares[best[1]] or 0) < _SAME:
        return Guess(None, f"Several columns fit {what} equally well: {_listed(best)}. Choose one.")
    reasons = []
    if others := [name for name in fitting if name != best[0]]:
        reasons.append(f"{_listed(others)} would fit too")
    if passed_over := [name for name in ranks if ranks[name] < ranks[best[0]]]:
        reasons.append(f"the cells of {_listed(passed_over)} look different")
    return Guess(
        best[0], f"Chosen for {what}: {'; '.join([quoted(best[0]), *reasons])}." * bool(reasons)
    )


def _by_content(columns: Sequence[str], shares: Mapping[str, float | None]) -> Guess:
    full = [
        name
        for name in columns
        if (shares[name] or 0) >= _PLENTY and not set(_words(name)) & set(_NOT_EMAIL.split())
    ]
    if len(full) == 1:
        return Guess(full[0], f"Chosen for {EMAIL} by its cells: {quoted(full[0])}.")
    if full:
        return Guess(None, f"Several columns hold addresses: {_listed(full)}. Choose one.")
    return Guess()


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(quoted, names))


def _words(name: str) -> list[str]:
    """Return a name's words in lower case, with "e mail" as one word."""
    words = [word.lower() for word in _WORDS.findall(name)]
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "e" and word in _EMAIL_WORDS:
            joined.pop()
        joined.append(word)
    return joined


def _email_rank(name: str) -> int | None:
    """Return 0 for the default name, 1 for other names of it, 2 for a specific one; else None."""
    if name == EMAIL:
        return 0
    words = set(_words(name))
    if not words & _EMAIL_WORDS or words & set(_NOT_EMAIL.split()):
        return None
    return 1 if words <= _EMAIL_WORDS | _FILLERS else 2


def _url_rank(name: str, networks: Collection[str]) -> int | None:
    if name == PROFNET_URL:
        return 0
    profile = {"profile", *(network.lower() for network in networks)}
    # The name of a network may look like several words.
    words = set(_words(name)) | {word for word in re.split(r"[\W_]+", name.lower()) if word}
    if not words & profile or words & set(_NOT_PROFILE.split()):
        return None
    return 1 if words <= profile | _LINK_WORDS else 2


def _share(cells: pd.Series[Any], pattern: str) -> float | None:
    """Return the share of a column's texts that look right; None where it has none."""
    texts = [
        text
        for cell in cells.head(_CELLS).tolist()
        if isinstance(cell, str) and (text := cell.strip())
    ]
    if not texts:
        return None
    right = re.compile(pattern)
    return sum(
        len(text) <= _CHARACTERS and right.fullmatch(text) is not None for text in texts
    ) / len(texts)
