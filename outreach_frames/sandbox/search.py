"""People search: from filters to matching positions, and from positions to a page's bytes.

The interface document does not say how text is matched. This is the sandbox's plain choice:

- Texts match by whole words, ignoring case, accents and punctuation. The words of a value must be
  consecutive, and the last one may be the start of a word if it has three letters or more.
- A place matches its city, state or country in the same way. A value of fewer than three letters
  must be a whole city, state or country: "DE" does not match "Île-de-France".
- With `person_title_exact_match`, the whole title must match.

`RULES` defines how each filter matches. Values of one filter are alternatives; different filters
must all match. An excluding filter negates the rule of the filter that `excludes` names in `spec`.
Empty texts and filters without values (an empty list, false) are ignored. A filter that searches in
texts rejects more than 1,000 values (400), so that one search cannot block the others.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from outreach_frames import spec
from outreach_frames.sandbox.rules import bad_request

Filters = Mapping[str, str | bool | Sequence[str]]

TITLE_EXACT: Final = "person_title_exact_match"
WHOLE_GROUPS: Final = "company_domains_match_subsidiaries_and_affiliates"

MAX_SEARCHED_VALUES: Final = 1_000
MIN_PREFIX: Final = 3  # letters
_MAX_CACHED_SEARCHES: Final = 8
# Lowercase letters that Unicode does not decompose into a base letter and an accent.
_UNDECOMPOSED: Final = str.maketrans("øłđ\N{LATIN SMALL LETTER DOTLESS I}", "oldi", "") | {
    ord("æ"): "ae"
}


@dataclass(frozen=True, slots=True)
class Rule:
    """The SQL condition on `people` for one filter."""

    condition: str
    when: str = ""  # a boolean filter that replaces `condition` with `instead`
    instead: str = ""


# Tables with one column, `value`: `:values` are case-folded for equality, `:wholes` are words for
# equality, `:words` and `:places` are for `instr`. A company's location is its headquarters.
RULES: Final[Mapping[str, Rule]] = {
    "person_name": Rule("instr(name, :words)"),
    "person_titles": Rule(
        "role IN (SELECT number FROM roles, :words WHERE instr(title, value))",
        when=TITLE_EXACT,
        instead="role IN (SELECT number FROM roles WHERE title IN :wholes)",
    ),
    "person_seniorities": Rule("role IN (SELECT number FROM roles WHERE seniority IN :values)"),
    "person_departments": Rule("role IN (SELECT number FROM roles WHERE department IN :values)"),
    "person_job_functions": Rule(
        "role IN (SELECT number FROM roles WHERE job_function IN :values)"
    ),
    "person_locations": Rule(
        "place IN (SELECT number FROM places, :places WHERE instr(location, value))"
    ),
    "company_locations": Rule(
        "company IN (SELECT number FROM companies, :places WHERE instr(location, value))"
    ),
    "company_names": Rule(
        "company IN (SELECT number FROM companies, :words WHERE instr(name, value))"
    ),
    "company_ids": Rule("company IN (SELECT number FROM companies WHERE id IN :values)"),
    # A company's group is itself, its parent and all subsidiaries of that parent.
    "company_domains": Rule(
        "company IN (SELECT number FROM companies WHERE domain IN :values)",
        when=WHOLE_GROUPS,
        instead="""company IN (
            SELECT number FROM companies WHERE group_number IN (
                SELECT group_number FROM companies WHERE domain IN :values))""",
    ),
    "company_profnet_urls": Rule(
        "company IN (SELECT number FROM companies WHERE profnet_url IN :values)"
    ),
    "company_focuses": Rule(
        """company IN (
            SELECT number FROM companies, json_each(focuses) AS focus
            WHERE focus.value IN :values)"""
    ),
    "company_sizes": Rule("company IN (SELECT number FROM companies WHERE size IN :values)"),
    "company_types": Rule("company IN (SELECT number FROM companies WHERE type IN :values)"),
    "company_industries": Rule(
        "company IN (SELECT number FROM companies WHERE industry IN :values)"
    ),
    "education_company_ids": Rule(
        """position IN (
            SELECT person FROM educations WHERE school IN (
                SELECT number FROM schools WHERE id IN :values))"""
    ),
    "education_company_names": Rule(
        """position IN (
            SELECT person FROM educations WHERE school IN (
                SELECT number FROM schools, :words WHERE instr(folded, value)))"""
    ),
    "profnet_networks": Rule(
        """networks & (
            SELECT coalesce(sum(1 << bit), 0) FROM network_users
            WHERE email IN :values OR :all_networks IN :values) <> 0"""
    ),
    "company_investors": Rule(
        """company IN (
            SELECT company FROM company_investors WHERE investor IN (
                SELECT number FROM investors, :words WHERE instr(folded, value)))"""
    ),
    # Values are full company names; a company does not share investors with itself.
    "company_shares_investors_with": Rule(
        """company IN (
            SELECT other.company FROM companies
            JOIN company_investors AS own ON own.company = companies.number
            JOIN company_investors AS other ON other.investor = own.investor
            WHERE other.company <> own.company AND companies.name IN :wholes)"""
    ),
}

# Boolean filters that only change how another filter matches.
SWITCHES: Final = tuple(rule.when for rule in RULES.values() if rule.when)


class PeopleIndex:
    """People search over a filled database, with a cache of recent searches; not thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._matches = lru_cache(_MAX_CACHED_SEARCHES)(self._matching_positions)

    def reload(self) -> None:
        """Clear the cache after the people have changed."""
        self._matches.cache_clear()

    def search(self, filters: Filters, *, page: int, page_size: int) -> tuple[int, list[bytes]]:
        """Return the number of matching people, and the JSON of one page; pages count from 1.

        >>> from outreach_frames.sandbox.population import fill
        >>> connection = sqlite3.connect(":memory:")
        >>> fill(connection, people=20, seed=0)
        >>> total, people = PeopleIndex(connection).search({}, page=1, page_size=5)
        >>> total, len(people)
        (20, 5)
        >>> connection.close()
        """
        # JSON, because a key of the cache must be hashable.
        key = orjson.dumps(_active_filters(filters), option=orjson.OPT_SORT_KEYS)
        matches = self._matches(key)
        start = (page - 1) * page_size
        return len(matches), self._bodies(matches[start : start + page_size])

    def school_ids(self) -> dict[str, str]:
        """Return the ids of all schools with alumni in the world, by name."""
        return dict(
            self._connection.execute(
                """SELECT name, id FROM schools
                WHERE EXISTS (SELECT 1 FROM educations WHERE school = number) ORDER BY number"""
            )
        )

    def investors(self) -> list[str]:
        """Return the names of investors in companies with people in the world."""
        rows = self._connection.execute(
            """SELECT name FROM investors WHERE EXISTS (
                SELECT 1 FROM company_investors JOIN people USING (company)
                WHERE investor = number) ORDER BY number"""
        )
        return [name for (name,) in rows]

    def network_users(self) -> list[str]:
        """Return the emails of the users whose networks are searchable."""
        rows = self._connection.execute("SELECT email FROM network_users ORDER BY bit")
        return [email for (email,) in rows]

    def _matching_positions(self, filters: bytes) -> Sequence[int]:
        conditions, values = _conditions(orjson.loads(filters))
        # The conditions come from RULES; the caller's values are bound as parameters.
        rows = self._connection.execute(
            f"SELECT position FROM people WHERE {conditions} ORDER BY position",  # noqa: S608
            values,
        )
        return array("I", (position for (position,) in rows))

    def _bodies(self, positions: Sequence[int]) -> list[bytes]:
        """Return the JSON of the people at these positions, with their companies inserted."""
        rows = self._connection.execute(
            """SELECT person_bodies.body, company_bodies.body FROM person_bodies
            JOIN company_bodies ON number = company
            WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position""",
            (orjson.dumps(list(positions)).decode(),),
        )
        return [b'%b,"company":%b}' % (person[:-1], company) for person, company in rows]


def words(text: str) -> str:
    """Return the words of a text without accents, in lowercase, between spaces.

    >>> words("Crème brûlée, & Co.")
    ' creme brulee co '
    """
    # NFKD separates accents from their letters.
    letters = unicodedata.normalize("NFKD", text.casefold().translate(_UNDECOMPOSED))
    return f" {' '.join(''.join(map(_plain_letter, letters)).split())} "


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
    *_, last = ["", *text.split()]
    return len(last) >= MIN_PREFIX


def _searched_words(value: str) -> str:
    text = words(value)
    return text.rstrip() if _is_prefix(text) else text


def _searched_place(value: str) -> str:
    text = ",".join(words(part) for part in value.split(",") if part.strip())
    return text.rstrip() if _is_prefix(text) else f",{text},"


def _folded(value: str) -> str:
    # SQLite would cut the value at a NUL and search for the part before it.
    return value.casefold().replace("\0", "\N{REPLACEMENT CHARACTER}")


# How the values of a filter are prepared for the tables in the conditions of `RULES`.
_TABLES: Final[Mapping[str, Callable[[str], str]]] = {
    ":values": _folded,
    ":wholes": words,
    ":words": _searched_words,
    ":places": _searched_place,
}


def _active_filters(filters: Filters) -> dict[str, list[str] | bool]:
    """Drop filters without a value, and sort the texts of the other filters."""
    active: dict[str, list[str] | bool] = {}
    for name, value in filters.items():
        texts = [value] if isinstance(value, str) else value
        active[name] = texts if isinstance(texts, bool) else sorted(set(texts) - {""})
    return {name: value for name, value in active.items() if value}


def _conditions(active: Mapping[str, list[str] | bool]) -> tuple[str, dict[str, str]]:
    conditions, values = ["1"], {"all_networks": spec.ALL_NETWORKS}
    for name, value in active.items():
        if name in SWITCHES:
            continue
        opposite = spec.FILTERS_BY_NAME[name].excludes
        rule = RULES[opposite or name]
        # A switch applies to a filter, never to its opposite.
        switched = rule.when and active.get(rule.when) and not opposite
        condition = rule.instead if switched else rule.condition
        if "instr" in condition and isinstance(value, list) and len(value) > MAX_SEARCHED_VALUES:
            raise bad_request(f"{name} accepts at most {MAX_SEARCHED_VALUES:,} values")
        for table, prepare in _TABLES.items():
            if table in condition and isinstance(value, list):
                parameter = f"{name}_{table[1:]}"
                rows = f"(SELECT value FROM json_each(:{parameter}))"  # noqa: S608 - names from above
                condition = condition.replace(table, rows)
                values[parameter] = orjson.dumps([prepare(text) for text in value]).decode()
        conditions.append(f"NOT ({condition})" if opposite else condition)
    return " AND ".join(f"({condition})" for condition in conditions), values
