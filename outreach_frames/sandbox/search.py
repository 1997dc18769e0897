"""People search: from filters to matching positions, and from positions to a page's bytes.

The interface document does not say how text is matched. This is the sandbox's plain choice:

- Texts match by whole words, ignoring case, accents and punctuation. The words of a value must be
  consecutive, and the last one may be the start of a word if it has three letters or more.
- A place matches its city, state or country in the same way. A value of fewer than three letters
  must be a whole city, state or country: "DE" does not match "Île-de-France".
- With `person_title_exact_match`, the whole title must match.

`RULES` defines how each filter matches. Values of one filter are alternatives; different filters
must all match. An excluding filter negates the rule of the filter that `excludes` names in `spec`.
Empty texts and filters without values (an empty list, false) are ignored.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from outreach_frames import spec

Filters = Mapping[str, str | bool | Sequence[str]]

TITLE_EXACT: Final = "person_title_exact_match"
WHOLE_GROUPS: Final = "company_domains_match_subsidiaries_and_affiliates"

MIN_PREFIX: Final = 3  # letters
_MAX_CACHED_SEARCHES: Final = 8
# Lowercase letters that Unicode does not decompose into a base letter and an accent.
_UNDECOMPOSED: Final = str.maketrans("øłđ\N{LATIN SMALL LETTER DOTLESS I}", "oldi", "") | {
    ord("æ"): "ae"
}


@lru_cache(maxsize=10_000)
def words(text: str) -> str:
    """Return the words of a text without accents, in lowercase, between spaces.

    >>> words("Crème brûlée, & Co.")
    ' creme brulee co '
    """
    # NFKD separates accents from their letters.
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_UNDECOMPOSED))
    return f" {' '.join(''.join(map(_plain_letter, letters)).split())} "


@lru_cache(maxsize=10_000)
def place_words(location: str) -> str:
    """Return the words of a city, state and country, with and without the state.

    >>> place_words("Zürich, Zürich, Switzerland")
    ', zurich , zurich , switzerland , zurich , switzerland ,'
    """
    parts = [words(part) for part in location.split(",")]
    shorter = [parts[0], parts[-1]] if len(parts) > 2 else []
    return f",{','.join([*parts, *shorter])},"


@lru_cache(maxsize=10_000)
def _plain_letter(letter: str) -> str:
    if unicodedata.combining(letter):
        return ""
    # Vowel signs of some scripts are marks, and belong to the word.
    return letter if unicodedata.category(letter)[0] in "LMN" else " "


def _is_prefix(text: str) -> bool:
    """Return whether the last word of a text may be the start of a word."""
    return len(text.strip().rpartition(" ")[2]) >= MIN_PREFIX


def _searched_words(value: str) -> str:
    text = words(value)
    return text.rstrip() if _is_prefix(text) else text


def _searched_place(value: str) -> str:
    text = ",".join(words(part) for part in value.split(",") if part.strip())
    return text.rstrip() if _is_prefix(text) else f",{text},"


def _folded(value: str) -> str:
    # SQLite would cut the value at a NUL and search for the part before it.
    return value.casefold().replace("\0", "\N{REPLACEMENT CHARACTER}")


class Rule(NamedTuple):
    """The SQL condition on `people` for one filter, and how to prepare the filter's values.

    In the condition, `:values` is a table of the prepared values with one column, `value`.
    """

    condition: str
    prepare: Callable[[str], str] = _folded


# The columns come from `RULES`.
def _contains(column: str) -> str:
    return f"EXISTS (SELECT 1 FROM :values WHERE instr({column}, value))"  # noqa: S608


def _lists(column: str) -> str:
    """Return the condition that a list in JSON has one of the values."""
    return f"EXISTS (SELECT 1 FROM json_each({column}) AS own WHERE own.value IN :values)"  # noqa: S608


def _at_company(condition: str) -> str:
    return f"company IN (SELECT number FROM companies WHERE {condition})"  # noqa: S608


# A company's location is its headquarters.
RULES: Final[Mapping[str, Rule]] = {
    "person_name": Rule(_contains("name"), _searched_words),
    "person_titles": Rule(_contains("title"), _searched_words),
    "person_seniorities": Rule("seniority IN :values"),
    "person_departments": Rule("department IN :values"),
    "person_job_functions": Rule("job_function IN :values"),
    "person_locations": Rule(_contains("location"), _searched_place),
    "company_locations": Rule(_at_company(_contains("location")), _searched_place),
    "company_names": Rule(_at_company(_contains("name")), _searched_words),
    "company_ids": Rule(_at_company("id IN :values")),
    "company_domains": Rule(_at_company("domain IN :values")),
    "company_profnet_urls": Rule(_at_company("profnet_url IN :values")),
    "company_focuses": Rule(_at_company(_lists("focuses"))),
    "company_sizes": Rule(_at_company("size IN :values")),
    "company_types": Rule(_at_company("type IN :values")),
    "company_industries": Rule(_at_company("industry IN :values")),
    "education_company_ids": Rule(_lists("school_ids")),
    "education_company_names": Rule(_contains("schools"), _searched_words),
    "profnet_networks": Rule(_lists("networks")),
    "company_investors": Rule(_at_company(_contains("investors")), _searched_words),
    # Values are full company names; a company does not share investors with itself.
    "company_shares_investors_with": Rule(
        """company IN (
            SELECT companies.number FROM companies, json_each(companies.investors) AS own
            JOIN companies AS other, json_each(other.investors) AS theirs
            WHERE other.name IN :values AND other.number <> companies.number
            AND own.value = theirs.value)""",
        words,
    ),
}
# The rules with a boolean filter that only changes how another filter matches. A company's group is
# itself, its parent and all subsidiaries of that parent.
SWITCHES: Final[Mapping[str, tuple[str, Rule]]] = {
    "person_titles": (TITLE_EXACT, Rule("title IN :values", words)),
    "company_domains": (
        WHOLE_GROUPS,
        Rule(
            _at_company(
                "group_number IN (SELECT group_number FROM companies WHERE domain IN :values)"
            )
        ),
    ),
}


class PeopleIndex:
    """People search over a filled database, with a cache of recent searches; not thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._matches = lru_cache(_MAX_CACHED_SEARCHES)(self._matching_positions)

    def reload(self) -> None:
        """Clear the cache after the people have changed."""
        self._matches.cache_clear()

    def search(self, filters: Filters, *, page: int, page_size: int) -> tuple[int, list[bytes]]:
        """Return the number of matching people, and the JSON of one page; pages count from 1."""
        # JSON, because a key of the cache must be hashable.
        key = msgspec.json.encode(_active_filters(filters), order="sorted")
        matches = self._matches(key)
        start = (page - 1) * page_size
        return len(matches), self._bodies(matches[start : start + page_size])

    def _matching_positions(self, filters: bytes) -> Sequence[int]:
        conditions, values = _conditions(msgspec.json.decode(filters))
        # The conditions come from RULES; the caller's values are bound as parameters.
        rows = self._connection.execute(
            f"SELECT position FROM people WHERE {conditions} ORDER BY position",  # noqa: S608
            values,
        )
        return array("I", (position for (position,) in rows))

    def _bodies(self, positions: Sequence[int]) -> list[bytes]:
        """Return the JSON of the people at these positions, with their companies inserted."""
        rows = self._connection.execute(
            """SELECT people.body, companies.body FROM people JOIN companies ON number = company
            WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position""",
            (msgspec.json.encode(list(positions)).decode(),),
        )
        return [b'%b,"company":%b}' % (person[:-1], company) for person, company in rows]


def _active_filters(filters: Filters) -> dict[str, list[str] | bool]:
    """Drop filters without a value, and sort the texts of the other filters."""
    active: dict[str, list[str] | bool] = {}
    for name, value in filters.items():
        texts = [value] if isinstance(value, str) else value
        active[name] = texts if isinstance(texts, bool) else sorted(set(texts) - {""})
    return {name: value for name, value in active.items() if value}


def _conditions(active: Mapping[str, list[str] | bool]) -> tuple[str, dict[str, str]]:
    """Return the SQL condition of all filters, and the values that it binds as parameters."""
    conditions, parameters = ["1"], {}
    for name, texts in active.items():
        if isinstance(texts, bool):
            continue
        condition, prepare = _rule_of(name, active)
        # The parameter is a list in JSON, because SQLite binds no tables.
        table = f"(SELECT value FROM json_each(:{name}))"  # noqa: S608 - a name of `spec`
        condition = condition.replace(":values", table)
        is_excluding = bool(spec.FILTERS_BY_NAME[name].excludes)
        conditions.append(f"NOT ({condition})" if is_excluding else condition)
        parameters[name] = msgspec.json.encode([*map(prepare, texts)]).decode()
    return " AND ".join(conditions), parameters


def _rule_of(name: str, active: Mapping[str, list[str] | bool]) -> Rule:
    """Return a filter's rule: that of the filter it is opposite to, or of its active switch."""
    if name in SWITCHES:
        switch, rule = SWITCHES[name]
        if active.get(switch):
            return rule
    return RULES[spec.FILTERS_BY_NAME[name].excludes or name]
