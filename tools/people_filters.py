"""Generate the module with the types of the search filters.

`python -m tools.people_filters` writes them to the package, from `spec`.
"""

from __future__ import annotations

from pathlib import Path

from outreach_frames import spec
from outreach_frames.accounts.companies import IDENTIFIER_KINDS
from outreach_frames.accounts.named_people import PERSON_NAME
from outreach_frames.resources import people_filters
from outreach_frames.resources.search_arguments import FILTER_TYPES

MODULE = Path(people_filters.__file__)
# `find_people` sets these filters itself, from its table.
FROM_TABLE = {PERSON_NAME, *(kind.filter for kind in IDENTIFIER_KINDS)}
TEXT = '''\
"""The search filters as types; written by `python -m tools.people_filters`."""

from __future__ import annotations

from typing import TypedDict

from outreach_frames.common.arguments import ListOfText


class FindPeopleFilters(TypedDict, total=False):
    """All filters but those that `find_people` sets from its table."""

{others}


class PeopleFilters(FindPeopleFilters, total=False):
    """The filters of a people search; `filters()` lists their known values."""

{from_table}
'''


def module_text() -> str:
    """Return the source of the module."""
    # Types allow unknown values too, because the lists of known values may be incomplete.
    lines = {one.name: f"    {one.name}: {FILTER_TYPES[one.type]} | None" for one in spec.FILTERS}
    return TEXT.format(
        others="\n".join(line for name, line in lines.items() if name not in FROM_TABLE),
        from_table="\n".join(line for name, line in lines.items() if name in FROM_TABLE),
    )


if __name__ == "__main__":
    MODULE.write_text(module_text(), encoding="utf-8")
