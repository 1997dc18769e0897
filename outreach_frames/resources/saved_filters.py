"""Save search filters as JSON files and load them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from outreach_frames.common.atomic_files import (
    check_suffix,
    expanded,
    replace_file,
)
from outreach_frames.resources.people_filters import PeopleFilters
from outreach_frames.resources.search_arguments import (
    SAVED_KIND,
    check_filters,
    shows_filters,
)


@shows_filters()
def save_filters(
    path: str | Path,
    filters: Mapping[str, Any] | str | PathLike[str] | None = None,
    **fields: Unpack[PeopleFilters],
) -> Path:
    """Save search filters as a JSON file.

    Parameters
    ----------
    path : str or Path
        The file, which is replaced if it exists. Its name must end in ``.json`` or have no ending.
    filters : mapping or path, optional
        Search filters by name, or the file of another saved search.
    **fields
        Search filters by name, such as ``person_titles=["Head of Sales"]``; they override
        `filters`.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    InvalidInputError
        A filter is invalid, or the file cannot be written.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import tempfile
    >>> import outreach_frames as of
    >>> path = Path(tempfile.mkdtemp()) / "heads_of_sales.json"
    >>> of.load_filters(of.save_filters(path, person_titles=["Head of Sales"]))
    {'person_titles': ['Head of Sales']}
    """
    check_suffix(path, (".json", ""), "a saved search as JSON")
    body = check_filters(filters, fields)
    saved = {"kind": SAVED_KIND, "version": 1, "filters": body}
    content = f"{json.dumps(saved, indent=2, ensure_ascii=False)}\n".encode()
    return replace_file(path, lambda file: file.write(content))


def load_filters(path: str | Path) -> dict[str, Any]:
    """Load search filters that `save_filters` wrote.

    Parameters
    ----------
    path : str or Path
        The path of the saved search.

    Returns
    -------
    dict
        Filter names and values. Functions with the argument `filters` also accept the path.

    Raises
    ------
    InvalidInputError
        The file is missing, damaged or not a saved search, or a filter is invalid.

    Notes
    -----
    Interface: POST /people/search.

    Examples
    --------
    >>> import tempfile
    >>> path = save_filters(Path(tempfile.mkdtemp()) / "b2b.json", company_focuses=["b2b"])
    >>> load_filters(path)
    {'company_focuses': ['b2b']}
    """
    return check_filters(expanded(path))
