"""`of.keys`: normalised keys for comparing people and companies, not for sending.

The key of an invalid or ambiguous value is missing. pandas' `merge` joins missing keys to missing
keys: drop rows without a key before a merge, or use `df.outreach.match`, which never joins them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import pyarrow as pa

from outreach_frames.common.arguments import check_list
from outreach_frames.common.pandas_versions import STR
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.cells import Cells, texts_of
from outreach_frames.identity.domains import domain_cells
from outreach_frames.identity.keys import company_name_cells, email_cells, profnet_url_cells

__all__ = ["company_name", "domain", "email", "profnet_url"]


def __dir__() -> list[str]:
    return __all__


def email(values: Iterable[Any]) -> pd.Series[str]:
    """Return the normalised keys of email addresses.

    Parameters
    ----------
    values : Series or list of str
        Email addresses.

    Returns
    -------
    Series of str
        Spellings of one address, such as `ADA@x.example` and `Ada <ada@x.example>`, have the same
        key. The key is missing if a value has no address or several, or other text than a label, or
        a name in front of `<...>`. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    `add_to_sequence` treats rows with the same key as duplicates. pandas' `merge` joins missing
    keys to missing keys: drop them first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.email([" Ada@Brightforge.example", None]).tolist()
    ['ada@brightforge.example', nan]
    """
    return _keys(values, email_cells)


def domain(values: Iterable[Any]) -> pd.Series[str]:
    """Return the registered domains of web addresses, hosts and email addresses.

    Parameters
    ----------
    values : Series or list of str
        Addresses, with or without scheme, port and path.

    Returns
    -------
    Series of str
        Domains in lower case and ASCII, such as acme.co.uk for `https://blog.acme.co.uk/x`. A
        site builder's customers have separate domains: acme.github.io, not github.io. The
        domain is missing for IP addresses, single words, public suffixes and their sites
        (www.nhs.uk), and for values with several domains or with other text. A Series keeps its
        index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    The Public Suffix List is the copy in tldextract; nothing is downloaded. An unknown top-level
    domain counts as a public suffix. pandas' `merge` joins missing keys to missing keys: drop them
    first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.domain(["https://Blog.Acme.co.uk/x", "ada@acme.co.uk", "co.uk"]).tolist()
    ['acme.co.uk', 'acme.co.uk', nan]
    """
    return _keys(values, domain_cells)


def company_name(values: Iterable[Any]) -> pd.Series[str]:
    """Return the normalised keys of company names.

    Parameters
    ----------
    values : Series or list of str
        Company names.

    Returns
    -------
    Series of str
        Names that differ only in case, punctuation, symbols such as `®` and legal form, such as
        `Acme, Inc.`, `SIA „Acme“` and `ACME GmbH`, have the same key. The key is missing for a
        placeholder, an error text such as `#N/A`, a name of symbols only and a list of several
        names. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    Different companies may have the same name: prefer `domain`. `find_people` searches names as
    they are. pandas' `merge` joins missing keys to missing keys: drop them first, or use
    `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.company_name(["Acme, Inc.", "ACME S.A.", "n/a"]).tolist()
    ['acme', 'acme', nan]
    """
    return _keys(values, company_name_cells)


def profnet_url(values: Iterable[Any]) -> pd.Series[str]:
    """Return the normalised keys of profile URLs.

    Parameters
    ----------
    values : Series or list of str
        Profile URLs.

    Returns
    -------
    Series of str
        URLs of one profile have the same key, regardless of scheme, case, host prefix and tracking
        parameters. The key is missing if a value has no URL or several, or other text than a label,
        or a name in front of `<...>`. A Series keeps its index and name.

    Raises
    ------
    InvalidInputError
        The values are not a list or a column.

    Notes
    -----
    For `add_to_sequence`, rows with the same key are duplicates; for `df.outreach.match`, they
    match. For URLs other than `/in/<name>`, this holds only if the rows have no email address.
    pandas' `merge` joins missing keys to missing keys: drop them first, or use `df.outreach.match`.

    Examples
    --------
    >>> import outreach_frames as of
    >>> of.keys.profnet_url(["https://www.profnet.example/in/Ada/", None]).tolist()
    ['profnet.example/in/ada', nan]
    """
    return _keys(values, profnet_url_cells)


def _keys(values: Iterable[Any], read: Callable[[pa.Array], Cells]) -> pd.Series[str]:
    if isinstance(values, str):
        raise InvalidInputError("values is one text; pass a list of text or a frame's column.")
    column = (
        values
        if isinstance(values, pd.Series)
        else pd.Series(check_list("values", values), dtype=object)
    )
    # Pass an array: pandas would align a Series by label instead of by row.
    keys = read(texts_of(column)).single_keys().to_numpy(zero_copy_only=False)
    series: pd.Series[str] = pd.Series(keys, index=column.index, name=column.name, dtype=STR)
    return series
