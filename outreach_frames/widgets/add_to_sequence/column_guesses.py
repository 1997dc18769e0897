"""Guesses which columns of a frame identify its leads, from their names and then their cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

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

# "E-Mail", "e mail" and "eMail" are one word.
_E_MAIL: Final = re.compile(r"(?<![^\W_])e[\W_]*mail", re.IGNORECASE)
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


class Guess(NamedTuple):
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
    by_name = _guess(EMAIL, {name: _email_rank(name) for name in columns}, emails)
    return {
        EMAIL: by_name if by_name != Guess() else _by_content(columns, emails),
        PROFNET_URL: _guess(
            PROFNET_URL, {name: _url_rank(name, networks) for name in columns}, urls
        ),
    }


def _guess(
    what: str, all_ranks: Mapping[str, int | None], shares: Mapping[str, float | None]
) -> Guess:
    ranks = {name: rank for name, rank in all_ranks.items() if rank is not None}
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
        if (shares[name] or 0) >= _PLENTY and _words(name).isdisjoint(_NOT_EMAIL.split())
    ]
    if len(full) == 1:
        return Guess(full[0], f"Chosen for {EMAIL} by its cells: {quoted(full[0])}.")
    if full:
        return Guess(None, f"Several columns hold addresses: {_listed(full)}. Choose one.")
    return Guess()


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(quoted, names))


def _words(name: str) -> set[str]:
    """Return a name's words in lower case."""
    return {word.lower() for word in _WORDS.findall(_E_MAIL.sub("email", name))}


def _email_rank(name: str) -> int | None:
    return 0 if name == EMAIL else _rank(_words(name), _EMAIL_WORDS, _FILLERS, _NOT_EMAIL)


def _url_rank(name: str, networks: Collection[str]) -> int | None:
    # The name of a network may look like several words.
    words = _words(name) | set(re.findall(r"[^\W_]+", name.lower()))
    profile = {"profile", *(network.lower() for network in networks)}
    return 0 if name == PROFNET_URL else _rank(words, profile, _LINK_WORDS, _NOT_PROFILE)


def _rank(words: set[str], wanted: set[str], fillers: set[str], others: str) -> int | None:
    """Return 1 for a plain name, 2 for a specific one, None for the name of something else."""
    if words.isdisjoint(wanted) or not words.isdisjoint(others.split()):
        return None
    return 1 if words <= wanted | fillers else 2


def _share(cells: pd.Series[Any], pattern: str) -> float | None:
    """Return the share of a column's texts that look right; None where it has none."""
    texts = [cell.strip() for cell in cells.head(_CELLS) if isinstance(cell, str) and cell.strip()]
    if not texts:
        return None
    is_right = re.compile(pattern).fullmatch
    return fmean(len(text) <= _CHARACTERS and bool(is_right(text)) for text in texts)
