"""Recognise and append columns of a caller's frame, and build column names for files."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.text import listed, quoted, unique_name
from outreach_frames.errors import InvalidInputError

_, PROFNET_URL = spec.LEAD_IDENTIFIERS
_URL_COLUMN: Final = re.compile(r"[a-z][a-z0-9_]*_url")
_PROFILE_URL: Final = re.compile(r"(?i)(https?://)?[^\s/?#]+/in/[^\s/?#]")
_TESTED_URLS: Final = 20
# Documented fields such as `image_url`, by their names alone and as columns, are no network's.
_DOCUMENTED: Final = frozenset(
    name
    for path, _ in spec.leaves((*spec.PERSON, *spec.EDUCATION))
    for name in (path[-1], "_".join(path))
)
_PREFIX: Final = "outreach_"
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
# For each kind of identifier: the usual names of its columns, in lower case and without blanks and
# punctuation. Functions use such a column if it is the only one.
_NETWORK: Final = f"(?:profile|{spec.NETWORK_NAME}(?:profile)?)(?:url|link|page)?"
_USUAL_NAMES: Final = {
    "email": r"(?:business|contact|person|personal|primary|private|work)?e?mail(?:address|adresse)?"
    r"\d*(?:value)?",
    "profnet_url": rf"(?:contact|person)?{_NETWORK}\d*",
    "company_id": "companyid",
    "company_profnet_url": rf"(?:account|company){_NETWORK}",
    "domain": r"(?:account|company|organi[sz]ation)?(?:domain|homepage|url|web|website)"
    r"(?:address|link|name|url)?\d*",
    "company_name": "(?:account|company|employer|organi[sz]ation)(?:name)?",
    "person_name": "(?:attendee|contact|full|person)?name",
    "first_name": "firstname|givenname|vorname",
    "last_name": "lastname|surname|familyname|nachname|familienname",
}
# Names that count where the table has none of `_USUAL_NAMES`.
_FURTHER_NAMES: Final = {"company_name": "firma|firmenname|unternehmen"}
# For suggestions: a pattern of a word in the names of each identifier's columns, and words in the
# names of other columns, such as other people's addresses.
_NAMES: Final = {
    "email": (
        ".*mails?(address|adresse)?",
        "status sent opened open clicked replied bounced date time count number valid verified "
        "verification domain type provider limit template subject body text opt consent permission "
        "subscribed unsubscribed score confidence quality source hash owner sender manager "
        "assistant creator created by cc bcc list campaign frequency preference last",
    ),
    "profnet_url": (
        "profile",
        "company organisation organization school investor image photo picture avatar logo id name "
        "type status views score strength completeness headline about text description owner "
        "sender manager created by date count",
    ),
    "domain": ("domain|website|homepage", "status type count"),
}


def usual_names(kind: str, names: Iterable[Any]) -> list[Any]:
    """Return the usual column names of a kind of identifier, or only the exact name.

    >>> usual_names("email", ["Work E-Mail", "Email 2", "Email Status"])
    ['Work E-Mail', 'Email 2']
    >>> usual_names("domain", ["Website URL", "Company Domain Name", "domain"])
    ['domain']
    """
    distinct = [*dict.fromkeys(names)]
    if kind in distinct:
        return [kind]
    usual = [name for name in distinct if _has_form(_USUAL_NAMES[kind], name)]
    further = _FURTHER_NAMES.get(kind, "")
    return usual or [name for name in distinct if _has_form(further, name)]


def _has_form(pattern: str, name: object) -> bool:
    """Return whether a name has the form of a pattern, whatever its case and punctuation."""
    letters = filter(str.isalnum, unicodedata.normalize("NFKC", str(name)).casefold())
    return re.fullmatch(pattern or "(?!)", "".join(letters)) is not None


def find_profile_urls(names: Iterable[Any], values: Callable[[Any], Iterable[Any]]) -> str | None:
    """Return the column that has profile URLs under another name, if `profnet_url` has none.

    `values` returns a column's values; its first texts must all be URLs with a path `/in/<name>`.

    >>> find_profile_urls(["crm_a_url", "photo_url"], lambda _: ["https://crm-a.example/in/ada"])
    'crm_a_url'
    """
    names = list(names)
    if PROFNET_URL in names and any(isinstance(cell, str) for cell in values(PROFNET_URL)):
        return None
    for name in names:
        if not isinstance(name, str) or name in _DOCUMENTED:
            continue
        if _URL_COLUMN.fullmatch(name) and names.count(name) == 1:
            texts = (cell for cell in values(name) if isinstance(cell, str) and cell)
            first = [*islice(texts, _TESTED_URLS)]
            if first and all(map(_PROFILE_URL.match, first)):
                return name
    return None


def usual_column(frame: pd.DataFrame, kind: str, table: str = "The table") -> Any:
    """Return the column with the exact or the only usual name of a kind of identifier, or None."""
    usual = usual_names(kind, frame.columns)
    if len(usual) > 1:
        raise InvalidInputError(
            f"{table} has no column {quoted(kind)}, but {' and '.join(map(quoted, usual))}. Pass "
            f"the right one as {terms.argument(kind)}. {columns_text(frame)}"
        )
    return usual[0] if usual else None


def no_column_error(
    frame: pd.DataFrame, kinds: Collection[str], table: str = "The table"
) -> InvalidInputError:
    """Return the error for a table without a usual column of any of these kinds."""
    return InvalidInputError(
        f"{table} has no column with a usual name of {' or '.join(kinds)}. Pass the name of a "
        f"column as {' or '.join(map(terms.argument, kinds))}. {columns_text(frame)}"
    )


def columns_text(frame: pd.DataFrame) -> str:
    """List a table's columns in a sentence."""
    return f"Its columns are {listed(frame.columns)}."


def columns_like(field: str, names: Iterable[Any], networks: Collection[str] = ()) -> list[Any]:
    """Return the column names that suggest an identifier, the exact name first.

    >>> columns_like("email", ["Work E-Mail", "Email Status", "email"])
    ['email', 'Work E-Mail']
    """
    if field not in _NAMES:
        return usual_names(field, names)
    pattern, others = _NAMES[field]
    if field == "profnet_url":
        pattern = "|".join([pattern, *map(re.escape, {spec.NETWORK_NAME, *networks})])
    is_like = re.compile(pattern, re.IGNORECASE).fullmatch
    similar = [
        name
        for name in dict.fromkeys(names)
        if name == field
        or (any(map(is_like, words := _words(str(name)))) and words.isdisjoint(others.split()))
    ]
    return sorted(similar, key=lambda name: name != field)


def _words(name: str) -> set[str]:
    """Return a name's words; undivided words, too, as a network's name may look like several."""
    return {word.lower() for word in [*_WORDS.findall(name), *re.findall(r"[^\W_]+", name)]}


def append_columns(frame: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Append columns to a frame by position; names that the frame already has get a prefix.

    Names with several levels are joined to one.

    >>> left = pd.DataFrame({"status": ["new"]}, index=["a"])
    >>> append_columns(left, pd.DataFrame({"status": ["added"]})).columns.tolist()
    ['status', 'outreach_status']
    """
    if frame.columns.nlevels > 1:
        frame = frame.set_axis(text_names(frame.columns), axis=1)
    taken = [str(name) for name in frame.columns]
    longest = [_longest_prefixed(str(name), taken) for name in added.columns]
    names = [f"{_PREFIX}{name}" if name in taken else name for name in longest]
    appended = added.set_axis(frame.index, axis=0).set_axis(names, axis=1)
    result = pd.concat([frame, appended], axis=1) if taken else appended
    result.columns.names = frame.columns.names
    result.attrs = dict(frame.attrs)
    return result


def clashing_names(frame: pd.DataFrame, names: Iterable[object]) -> dict[str, str]:
    """Map the frame's own columns with these names to the names that `append_columns` uses.

    >>> clashing_names(pd.DataFrame({"status": ["customer"]}), ["status", "detail"])
    {'status': 'outreach_status'}
    """
    taken = [str(name) for name in frame.columns]
    longest = (_longest_prefixed(str(name), taken) for name in names)
    return {name: f"{_PREFIX}{name}" for name in longest if name in taken}


def drop_appended(
    frame: pd.DataFrame,
    names: Sequence[str],
    optional: Sequence[str] = (),
    values: Collection[str] | None = None,
) -> pd.DataFrame:
    """Drop the columns that an earlier `append_columns` added, if the frame has all `names`.

    With `values`, drop them only if the column of the first name has no other values.

    >>> earlier = pd.DataFrame(columns=["status", "outreach_status", "detail"])
    >>> drop_appended(earlier, ["status", "detail"]).columns.tolist()
    ['status']
    >>> drop_appended(earlier, ["status", "error_code"]).columns.tolist()
    ['status', 'outreach_status', 'detail']
    >>> own = pd.DataFrame({"status": ["customer"], "detail": ["VIP"]})
    >>> drop_appended(own, ["status", "detail"], values={"added"}).columns.tolist()
    ['status', 'detail']
    """
    # `optional` columns are dropped, too, if all of them follow `names`. If a name exists in
    # several prefixed forms, the longest form is the appended column.
    taken = [str(name) for name in frame.columns]
    dropped = [_longest_prefixed(name, taken) for name in names]
    if any(taken.count(name) != 1 for name in dropped):
        return frame
    if values is not None and not frame.iloc[:, taken.index(dropped[0])].isin(list(values)).all():
        return frame
    following = taken[max(map(taken.index, dropped)) + 1 :]
    candidates = [_longest_prefixed(name, taken) for name in optional]
    if all(taken.count(name) == 1 and name in following for name in candidates):
        dropped += candidates
    return frame.loc[:, np.array([name not in dropped for name in taken], dtype=bool)]


def _longest_prefixed(name: str, taken: Iterable[str]) -> str:
    """Return the longest name in `taken` that is this name with prefixes, else the name."""
    form = re.compile(f"(?:{_PREFIX})*{re.escape(name)}")
    return max(filter(form.fullmatch, taken), key=len, default=name)


def text_names(columns: pd.Index[Any]) -> list[str]:
    """Convert column names with one or more levels to unique text, for files.

    >>> text_names(pd.Index([1, "1", ("a", "b")], dtype=object))
    ['1', '1_2', 'a_b']
    """
    names: list[str] = []
    for column in columns:
        parts = column if isinstance(column, tuple) else (column,)
        name = "_".join(str(part) for part in parts if part != "")
        names.append(unique_name(name, names))
    return names
