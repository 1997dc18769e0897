"""People search: filters to matching positions, positions to the bytes of a page.

`RULES` is the whole of how a filter matches, and is what the search runs from. Several values of
one filter mean any of them, different filters together mean all. A filter that spec calls the
opposite of another one is that one's rule negated. Letters match whatever their case; accents
count; `%` and `_` are ordinary characters. A value that nobody has matches nobody; an empty text is
no value, and a filter without values (an empty list, false) does not filter. A filter that searches
in texts takes at most 1,000 values, so that no search holds up the others; more are refused (400).
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
    """How one filter matches: a condition on `people`, with `:values` for the filter's values.

    `when` names a boolean filter that, when true, puts `instead` in the condition's place.
    """

    condition: str
    when: str = ""
    instead: str = ""


# `:values` is a table of one column, `value`. `instr` is containment: names, titles and locations
# are searched in; everything else is equal or not. A company is where its headquarters are. A
# school is found by its own id.
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
    # The group of a company is itself, its parent, and all subsidiaries of that parent.
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
    # Companies are named in full here, and share nothing with themselves.
    "company_shares_investors_with": Rule(
        """company IN (
            SELECT other.company FROM companies
            JOIN company_investors AS own ON own.company = companies.number
            JOIN company_investors AS other ON other.investor = own.investor
            WHERE other.company <> own.company AND companies.name IN :values)"""
    ),
}

# Filters that match nobody by themselves: they change what another one means.
SWITCHES: Final = tuple(rule.when for rule in RULES.values() if rule.when)


class PeopleIndex:
    """Search over a filled database; it remembers who matched the last few sets of filters.

    Parameters
    ----------
    connection : sqlite3.Connection
        A filled database, used by this thread alone.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._matches: OrderedDict[bytes, Sequence[int]] = OrderedDict()
        self._all_positions: Sequence[int] = ()
        self.reload()

    def reload(self) -> None:
        """Forget who matched, after the people have changed."""
        self._matches.clear()
        rows = self._connection.execute("SELECT position FROM people ORDER BY position")
        self._all_positions = array("I", (position for (position,) in rows))

    def search(self, filters: Filters, *, page: int, page_size: int) -> tuple[int, list[bytes]]:
        """Return how many people match, and the people of one page.

        Parameters
        ----------
        filters : mapping
            Filter names of spec with values of their JSON types.
        page : int
            From 1; a page past the end has no people.
        page_size : int
            People on a page.

        Returns
        -------
        total : int
        people : list of bytes
            Each the JSON of a whole Person with its company, in the world's order.

        Notes
        -----
        Interface: POST /people/search.

        Examples
        --------
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
        """Return the ids of the schools that somebody went to, by their names."""
        return dict(
            self._connection.execute(
                """SELECT name, id FROM schools
                WHERE EXISTS (SELECT 1 FROM educations WHERE school = number) ORDER BY number"""
            )
        )

    def investors(self) -> list[str]:
        """Return the names of the investors of companies that somebody works at."""
        rows = self._connection.execute(
            """SELECT name FROM investors WHERE EXISTS (
                SELECT 1 FROM company_investors JOIN people USING (company)
                WHERE investor = number) ORDER BY number"""
        )
        return [name for (name,) in rows]

    def network_users(self) -> list[str]:
        """Return the addresses of the users whose networks are known."""
        rows = self._connection.execute("SELECT email FROM network_users ORDER BY bit")
        return [email for (email,) in rows]

    def _matching_positions(self, filters: Filters) -> Sequence[int]:
        """Return the positions of all who match, remembered or searched for."""
        wanted = _active_filters(filters)
        if not wanted:
            return self._all_positions
        key = orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)
        if key in self._matches:
            self._matches.move_to_end(key)
            return self._matches[key]
        conditions, values = _conditions(wanted)
        # The conditions are constants of RULES; what the caller sent is bound as parameters.
        rows = self._connection.execute(
            f"SELECT position FROM people WHERE {conditions} ORDER BY position",  # noqa: S608
            values,
        )
        self._matches[key] = array("I", (position for (position,) in rows))
        if len(self._matches) > _MAX_CACHED_SEARCHES:
            self._matches.popitem(last=False)
        return self._matches[key]

    def _bodies(self, positions: Sequence[int]) -> list[bytes]:
        """Return the people at these positions, each with the company put in at its end."""
        rows = self._connection.execute(
            """SELECT person_bodies.body, company_bodies.body FROM person_bodies
            JOIN company_bodies ON number = company
            WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position""",
            (orjson.dumps(list(positions)).decode(),),
        )
        return [b'%b,"company":%b}' % (person[:-1], company) for person, company in rows]


def _active_filters(filters: Filters) -> dict[str, list[str] | bool]:
    """Return the filters that have values: lists of folded text, or true."""
    wanted: dict[str, list[str] | bool] = {}
    for name, value in filters.items():
        texts = [value] if isinstance(value, str) else value
        wanted[name] = (
            texts if isinstance(texts, bool) else sorted({_folded(text) for text in texts if text})
        )
    return {name: value for name, value in wanted.items() if value}


def _folded(value: str) -> str:
    """Return a value as the tables hold it."""
    # SQLite would end the value at a NUL and search for what stands before it.
    return value.casefold().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _conditions(wanted: Mapping[str, list[str] | bool]) -> tuple[str, dict[str, str]]:
    """Return the filters as one SQL condition, and its parameters."""
    conditions, values = ["1"], {"all_networks": spec.ALL_NETWORKS}
    for name, value in wanted.items():
        if name in SWITCHES:
            continue
        opposite = spec.FILTERS_BY_NAME[name].excludes
        rule = RULES[opposite or name]
        # A switch widens or narrows what is asked for, never what is left out.
        switched = rule.when and wanted.get(rule.when) and not opposite
        condition = rule.instead if switched else rule.condition
        if "instr" in condition and isinstance(value, list) and len(value) > MAX_SEARCHED_VALUES:
            raise bad_request(f"{name} takes at most {MAX_SEARCHED_VALUES:,} values")
        table = _VALUES.replace(":values", f":{name}")
        condition = condition.replace(":values", table)
        conditions.append(f"NOT ({condition})" if opposite else condition)
        values[name] = orjson.dumps(value).decode()
    return " AND ".join(f"({condition})" for condition in conditions), values
