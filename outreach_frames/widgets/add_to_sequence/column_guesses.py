"""Guess from column names and cells which columns identify a frame's leads."""

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

# Maximum number of cells to examine per column, and maximum length of a matching text.
_MAX_CELLS: Final = 500
_MAX_CHARACTERS: Final = 300
# The minimum share of matching cells in a column with a matching name.
_MIN_NAMED_SHARE: Final = 0.3
# The minimum share of matching cells in a column with any name.
_MIN_SHARE: Final = 0.8
# Columns match equally well if their shares differ by less than this.
_TIE_MARGIN: Final = 0.2

# "E-Mail", "e mail" and "eMail" are one word.
_E_MAIL: Final = re.compile(r"(?<![^\W_])e[\W_]*mail", re.IGNORECASE)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
_EMAIL_WORDS: Final = {
    word + ending for word in ("email", "mail") for ending in ("", "s", "address", "adresse")
}
_EMAIL_FILLERS: Final = {"address", "addresses", "adresse", "id", "optional", "primary", "main"}
_URL_FILLERS: Final = {"url", "urls", "link", "uri", "page", "public", "optional", "web"}
# Columns with these words in the name do not have the person's own address or profile.
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
    """The guessed column (None if ambiguous) and a note for the analyst."""

    column: str | None = None
    note: str = ""


def guess_columns(
    frame: pd.DataFrame, columns: Sequence[str], networks: Collection[str] = (spec.NETWORK_NAME,)
) -> dict[str, Guess]:
    """Guess the columns of `email` and `profnet_url`; `networks` has names of the network."""
    emails = {name: _share(frame[name], SIMPLE_EMAIL) for name in columns}
    urls = {name: _share(frame[name], SIMPLE_URL) for name in columns}
    by_name = _guess_by_name(EMAIL, {name: _email_rank(name) for name in columns}, emails)
    return {
        EMAIL: by_name if by_name != Guess() else _guess_by_content(columns, emails),
        PROFNET_URL: _guess_by_name(
            PROFNET_URL, {name: _url_rank(name, networks) for name in columns}, urls
        ),
    }


def _guess_by_name(
    what: str, all_ranks: Mapping[str, int | None], shares: Mapping[str, float | None]
) -> Guess:
    ranks = {name: rank for name, rank in all_ranks.items() if rank is not None}
    if not ranks:
        return Guess()
    matching = [name for name in ranks if (shares[name] or 0) >= _MIN_NAMED_SHARE]
    matching = matching or [name for name in ranks if shares[name] is None]
    if not matching:
        named = _listed(ranks)
        return Guess(None, f"No column is chosen for {what}: the cells of {named} do not match.")
    best = [name for name in matching if ranks[name] == min(map(ranks.__getitem__, matching))]
    best.sort(key=lambda name: -(shares[name] or 0))
    if len(best) > 1 and (shares[best[0]] or 0) - (shares[best[1]] or 0) < _TIE_MARGIN:
        return Guess(None, f"Columns match {what} equally well: {_listed(best)}. Choose one.")
    reasons = []
    if others := [name for name in matching if name != best[0]]:
        reasons.append(f"{_listed(others)} would match too")
    if better_named := [name for name in ranks if ranks[name] < ranks[best[0]]]:
        reasons.append(f"the cells of {_listed(better_named)} do not match")
    return Guess(
        best[0], f"Chosen for {what}: {'; '.join([quoted(best[0]), *reasons])}." * bool(reasons)
    )


def _guess_by_content(columns: Sequence[str], shares: Mapping[str, float | None]) -> Guess:
    matching = [
        name
        for name in columns
        if (shares[name] or 0) >= _MIN_SHARE and _words(name).isdisjoint(_NOT_EMAIL.split())
    ]
    if len(matching) == 1:
        return Guess(matching[0], f"Chosen for {EMAIL}: {quoted(matching[0])}; the cells match.")
    if matching:
        return Guess(None, f"Columns with email addresses: {_listed(matching)}. Choose one.")
    return Guess()


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(quoted, names))


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(_E_MAIL.sub("email", name))}


def _email_rank(name: str) -> int | None:
    return 0 if name == EMAIL else _rank(_words(name), _EMAIL_WORDS, _EMAIL_FILLERS, _NOT_EMAIL)


def _url_rank(name: str, networks: Collection[str]) -> int | None:
    # Keep undivided words, too, because a network's name may look like several words.
    words = _words(name) | set(re.findall(r"[^\W_]+", name.lower()))
    profile = {"profile", *(network.lower() for network in networks)}
    return 0 if name == PROFNET_URL else _rank(words, profile, _URL_FILLERS, _NOT_PROFILE)


def _rank(words: set[str], key: set[str], fillers: set[str], stop_words: str) -> int | None:
    """Rank a column name: 1 without further words, 2 with further words, None for no match."""
    if words.isdisjoint(key) or not words.isdisjoint(stop_words.split()):
        return None
    return 1 if words <= key | fillers else 2


def _share(cells: pd.Series[Any], pattern: str) -> float | None:
    """Return the share of a column's texts that match, or None if the column has no text."""
    first = cells.head(_MAX_CELLS)
    texts = [cell.strip() for cell in first if isinstance(cell, str) and cell.strip()]
    if not texts:
        return None
    matches = re.compile(pattern).fullmatch
    return fmean(len(text) <= _MAX_CHARACTERS and bool(matches(text)) for text in texts)
