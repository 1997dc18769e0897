"""Save search filters as JSON files and load them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outreach_frames.common.atomic_files import (
    check_suffix,
    expanded,
    replace_file,
    require_readable_file,
    unreadable,
)
from outreach_frames.errors import InvalidInputError
from outreach_frames.resources.search_arguments import check_filters

_KIND = "outreach_frames people search"
_VERSION = 1


def save_filters(path: str | Path, filters: Mapping[str, Any]) -> Path:
    """Save search filters as a JSON file.

    Parameters
    ----------
    path : str or Path
        The file, which is replaced if it exists. Its name must end in ``.json`` or have no ending.
    filters : mapping
        Filter names and values, as `search_people` takes them.

    Returns
    -------
    Path
        The file.

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
    >>> of.load_filters(of.save_filters(path, {"person_titles": ["Head of Sales"]}))
    {'person_titles': ['Head of Sales']}
    """
    check_suffix(path, (".json", ""), "a saved search as JSON")
    saved = {"kind": _KIND, "version": _VERSION, "filters": check_filters(filters)}
    content = f"{json.dumps(saved, indent=2, ensure_ascii=False)}\n".encode()
    return replace_file(path, lambda file: file.write(content))


def load_filters(path: str | Path) -> dict[str, Any]:
    """Load search filters that `save_filters` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict
        Filter names and values, ready for `search_people`.

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
    >>> path = save_filters(Path(tempfile.mkdtemp()) / "b2b.json", {"company_focuses": ["b2b"]})
    >>> load_filters(path)
    {'company_focuses': ['b2b']}
    """
    source = expanded(path)
    require_readable_file(source, open_pipes=True)
    try:
        saved = json.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(source, error) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{source} is damaged: it is not valid JSON ({error}).") from error
    if not isinstance(saved, dict) or saved.get("kind") != _KIND:
        raise InvalidInputError(
            f"{source} is not a saved search. Pass a file written by save_filters()."
        )
    if saved.get("version") != _VERSION:
        raise InvalidInputError(
            f"{source} was written by another version (format {saved.get('version')!r}); "
            f"this version reads format {_VERSION}. Save the filters again."
        )
    try:
        return check_filters(saved.get("filters"))
    except InvalidInputError as error:
        raise InvalidInputError(f"{source} cannot be used: {error}") from error
