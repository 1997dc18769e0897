"""A people search as Python code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from outreach_frames.common.arguments import Headcount
from outreach_frames.widgets.python_code import call

DEFAULT_LIMIT: Final = 1000
DEFAULT_HEADCOUNT: Final[Headcount] = get_args(Headcount)[0]


def search_code(
    filters: Mapping[str, Any],
    limit: int | None = DEFAULT_LIMIT,
    headcount: Headcount = DEFAULT_HEADCOUNT,
    *,
    with_client: bool = False,
) -> str:
    r"""Return the Python code of a search, without arguments that are defaults.

    `with_client` says whether the call names its client.

    >>> print(search_code({"person_titles": ["CEO"]}, limit=50))
    people = of.search_people(
        person_titles=["CEO"],
        limit=50,
    )
    """
    arguments = dict(filters)
    if limit != DEFAULT_LIMIT:
        arguments["limit"] = limit
    if headcount != DEFAULT_HEADCOUNT:
        arguments["headcount"] = headcount
    named = [(f"{name}=", value) for name, value in arguments.items()]
    return call("people = of.search_people", [*named, *["client=client"] * with_client])
