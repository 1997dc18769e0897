"""`of.keys`: what people and companies are compared by. Keys are for comparing, never for sending.

A key is missing where there is none. pandas' `merge` joins missing to missing, so drop rows with no
key before a merge, or use `df.outreach.match`, which never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

from outreach_frames.common.arguments import check_list
from outreach_frames.common.text import has_lone_surrogate
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.domains import domain_keys
from outreach_frames.identity.keys import email_keys, profnet_url_keys

__all__ = ["domain", "email", "profnet_url"]


def email(values: Iterable[Any]) -> pd.Series[str]:
    """Return the form in which e-mail addresses are compared.

    Parameters
    ----------
    values : Series or list of str
        Addresses.

    Returns
    -------
    Series of str
        Two addresses of one mailbox have the same key, whatever their case and however the domain
        is written. Missing where there is no address. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    Rows of one key are duplicates in `add_to_sequence` too. pandas' `merge` joins missing keys to
    missing keys: drop them first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.email([" Ada@Brightforge.example", None]).tolist()
    ['ada@brightforge.example', nan]
    """
    return _keys(values, email_keys)


def domain(values: Iterable[Any]) -> pd.Series[str]:
    """Return the registered domain of web addresses, hosts, and e-mail addresses.

    Parameters
    ----------
    values : Series or list of str
        Addresses, with or without scheme, port and path.

    Returns
    -------
    Series of str
        In lower case and ASCII, such as acme.co.uk for https://blog.acme.co.uk/x. Hosts of
        a provider stay apart: acme.github.io is not github.io. Missing for IP addresses, single
        words, and public suffixes. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    The Public Suffix List is the one that comes with tldextract; nothing is downloaded. A top-level
    domain that is not in it counts as a suffix. pandas' `merge` joins missing keys to missing keys:
    drop them first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.domain(["https://Blog.Acme.co.uk/x", "ada@acme.co.uk", "co.uk"]).tolist()
    ['acme.co.uk', 'acme.co.uk', nan]
    """
    return _keys(values, domain_keys)


def profnet_url(values: Iterable[Any]) -> pd.Series[str]:
    """Return the form in which profile URLs are compared.

    Parameters
    ----------
    values : Series or list of str
        URLs of profiles.

    Returns
    -------
    Series of str
        Two URLs of one profile have the same key, whatever their scheme, case, host prefix and
        tracking parameters. Missing where there is no URL. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    Rows of one key are duplicates in `add_to_sequence` and match in `df.outreach.match` too; by
    a URL other than `/in/<name>` only if they have no address. pandas' `merge` joins missing keys
    to missing keys: drop them first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.profnet_url(["https://www.profnet.example/in/Ada/", None]).tolist()
    ['profnet.example/in/ada', nan]
    """
    return _keys(values, profnet_url_keys)


def _keys(values: Iterable[Any], keys_of: Callable[[pa.Array], pa.Array]) -> pd.Series[str]:
    if isinstance(values, str):
        raise InvalidInputError("values takes a list of text or a frame's column, not one text.")
    column = (
        values
        if isinstance(values, pd.Series)
        else pd.Series(check_list("values", values), dtype=object)
    )
    keys = keys_of(texts_of(column))
    # Without an index of its own, which pandas would align by label instead of by row.
    cells = keys.to_numpy(zero_copy_only=False)
    return pd.Series(cells, index=column.index, name=column.name, dtype="str")


def texts_of(column: pd.Series[Any]) -> pa.Array:
    """Return a column's text; a cell of another type has none."""
    if isinstance(column.dtype, pd.StringDtype):
        try:
            texts = pa.array(column.array, pa.large_string(), from_pandas=True)
            return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        except (UnicodeEncodeError, pa.ArrowInvalid, TypeError):
            pass
    cells = column.astype(object).tolist()
    return pa.array(
        [c if isinstance(c, str) and not has_lone_surrogate(c) else None for c in cells],
        pa.large_string(),
    )
