"""People search: from filters to matching positions, and from positions to a page's bytes.

`RULES` defines how each filter matches. Values of one filter are alternatives; different filters
must all match. An excluding filter negates the rule of the filter that `excludes` names in `spec`.
Matching ignores case but not accents; `%` and `_` are ordinary characters. Empty texts and filters
without values (an empty list, false) are ignored. A filter that searches in texts rejects more than
1,000 values (400), so that one search cannot block the others.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from outreach_frames import spec
from outreach_frames.sandbox.rules import bad_request

Filters = Mapping[str, str | bool | Sequence[str]]

TITLE_EXACT: Final = "person_title_exact_match"
WHOLE_GROUPS: Final = "company_domains_match_subsidiaries_and_affiliates"

MAX_SEARCHED_VALUES: Final = 1_000
_VALUES: Final = "(SELECT value FROM json_each(:values))"
_MAX_CACHED_SEARCHES: Final = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """The SQL condition on `people` for one filter."""

    condition: str
    when: str = ""  # a boolean filter that replaces `condition` with `instead`
    instead: str = ""


# `:values` is a table with one column, `value`. Names, titles and locations match by containment
# (`instr`), everything else by equality. A company's location is its headquarters.
RULES: Final[Mapping[str, Rule]] = {
    "person_name": Rule("instr(name, :values)"),
    "person_titles": Rule(
        "role IN (SELECT number FROM roles, :values WHERE instr(title, value))",
        when=TITLE_EXACT,
        instead="role IN (SELECT number FROM roles WHERE title IN :values)",
    ),
    "person_seniorities": Rule("role IN (SELECT number FROM roles WHERE seniority IN :values)"),
    "person_departments": Rule("role IN (SELECT number FROM roles WHERE department IN :values)"),
    "person_job_functions": Rule(
        "role IN (SELECT number FROM roles WHERE job_function IN :values)"
    ),
    "person_locations": Rule(
        "place IN (SELECT number FROM places, :values WHERE instr(location, value))"
    ),
    "company_locations": Rule(
        "company IN (SELECT number FROM companies, :values WHERE instr(location, value))"
    ),
    "company_names": Rule(
        "company IN (SELECT number FROM companies, :values WHERE instr(name, value))"
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
        "company IN (SELECT company FROM company_focuses WHERE focus IN :values)"
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
                SELECT number FROM schools, :values WHERE instr(folded, value)))"""
    ),
    "profnet_networks": Rule(
        """networks & (
            SELECT coalesce(sum(1 << bit), 0) FROM network_users
            WHERE email IN :values OR :all_networks IN :values) <> 0"""
    ),
    "company_investors": Rule(
        """company IN (
            SELECT company FROM company_investors WHERE investor IN (
                SELECT number FROM investors, :values WHERE instr(folded, value)))"""
    ),
    # Values are full company names; a company does not share investors with itself.
    "company_shares_investors_with": Rule(
        """company IN (
            SELECT other.company FROM companies
            JOIN company_investors AS own ON own.company = companies.number
            JOIN company_investors AS other ON other.investor = own.investor
            WHERE other.company <> own.company AND companies.name IN :values)"""
    ),
}

# Boolean filters that only change how another filter matches.
SWITCHES: Final = tuple(rule.when for rule in RULES.values() if rule.when)


class PeopleIndex:
    """People search over a filled database, with a cache of recent searches; not thread-safe."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._matches: OrderedDict[bytes, Sequence[int]] = OrderedDict()
        self._all_positions: Sequence[int] = ()
        self.reload()

    def reload(self) -> None:
        """Clear the cache after the people have changed."""
        self._matches.clear()
        rows = self._connection.execute("SELECT position FROM people ORDER BY position")
        self._all_positions = array("I", (position for (position,) in rows))

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
        matches = self._matching_positions(filters)
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

    def _matching_positions(self, filters: Filters) -> Sequence[int]:
        active = _active_filters(filters)
        if not active:
            return self._all_positions
        key = orjson.dumps(active, option=orjson.OPT_SORT_KEYS)
        if key in self._matches:
            self._matches.move_to_end(key)
            return self._matches[key]
        conditions, values = _conditions(active)
        # The conditions come from RULES; the caller's values are bound as parameters.
        rows = self._connection.execute(
            f"SELECT position FROM people WHERE {conditions} ORDER BY position",  # noqa: S608
            values,
        )
        self._matches[key] = array("I", (position for (position,) in rows))
        if len(self._matches) > _MAX_CACHED_SEARCHES:
            self._matches.popitem(last=False)
        return self._matches[key]

    def _bodies(self, positions: Sequence[int]) -> list[bytes]:
        """Return the JSON of the people at these positions, with their companies inserted."""
        rows = self._connection.execute(
            """SELECT person_bodies.body, company_bodies.body FROM person_bodies
            JOIN company_bodies ON number = company
            WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position""",
            (orjson.dumps(list(positions)).decode(),),
        )
        return [b'%b,"company":%b}' % (person[:-1], company) for person, company in rows]


def _active_filters(filters: Filters) -> dict[str, list[str] | bool]:
    """Drop filters without a value, and sort and case-fold the texts of the other filters."""
    active: dict[str, list[str] | bool] = {}
    for name, value in filters.items():
        texts = [value] if isinstance(value, str) else value
        active[name] = (
            texts if isinstance(texts, bool) else sorted({_folded(text) for text in texts if text})
        )
    return {name: value for name, value in active.items() if value}


def _folded(value: str) -> str:
    # SQLite would cut the value at a NUL and search for the part before it.
    return value.casefold().replace("\0", "\N{REPLACEMENT CHARACTER}")


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
        table = _VALUES.replace(":values", f":{name}")
        condition = condition.replace(":values", table)
        conditions.append(f"NOT ({condition})" if opposite else condition)
        values[name] = orjson.dumps(value).decode()
    return " AND ".join(f"({condition})" for condition in conditions), values
