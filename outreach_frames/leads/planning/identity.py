"""Who is the same person: identifiers in the form that they are compared by, never sent."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.leads.planning import syntax
from outreach_frames.leads.planning.cells import BLANKS

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DEFAULT_PORTS: Final = frozenset({None, 80, 443})
_SEGMENTS_OF_A_PROFILE: Final = 2


def email_key(text: str) -> str:
    """Return an address as addresses are compared: the case makes no difference.

    >>> email_key(" Anna@Example.org ") == email_key("anna@example.ORG")
    True
    """
    return unicodedata.normalize("NFC", text.strip(BLANKS).casefold())


def url_key(text: str) -> str:
    """Return a profile's address as these are compared.

    Scheme, `www.`, case, a trailing slash, fragment and percent-encoding make no difference; nor
    does a query, unless the path is so short that only the query can tell who it is.

    >>> url_key("https://WWW.Profnet.example/in/Anna/?from=mail")
    'profnet.example/in/anna'
    >>> url_key("profnet.example/view?id=7")
    'profnet.example/view?id=7'
    """
    text = text.strip(BLANKS)
    try:
        parts = urlsplit(text if _SCHEME.match(text) else f"//{text}")
        port = "" if parts.port in _DEFAULT_PORTS else f":{parts.port}"
    except ValueError:
        return _folded(text)
    host = (parts.hostname or "").removeprefix("www.")
    path = unquote(parts.path).rstrip("/")
    query = f"?{parts.query}" if parts.query and path.count("/") < _SEGMENTS_OF_A_PROFILE else ""
    return _folded(f"{host}{port}{path}{query}")


def email_keys(texts: pa.Array) -> pa.Array:
    """Return `email_key` of a whole column."""
    lowered = pc.utf8_lower(texts)
    return _with_rest(lowered, texts, syntax.is_simple_email(texts), email_key)


def url_keys(texts: pa.Array) -> pa.Array:
    """Return `url_key` of a whole column."""
    lowered = pc.utf8_rtrim(pc.utf8_lower(texts), "/")
    bare = pc.replace_substring_regex(lowered, r"\A(https?://)?(www\.)?", "")
    return _with_rest(bare, texts, syntax.is_simple_url(texts), url_key)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())


def _with_rest(
    keys: pa.Array, texts: pa.Array, is_simple: pa.Array, key: Callable[[str], str]
) -> pa.Array:
    """Put the keys of the texts that are not simple in their places."""
    rest = pc.invert(is_simple).fill_null(False)
    others = [key(text) for text in texts.filter(rest).to_pylist()]
    return pc.replace_with_mask(keys, rest, pa.array(others, keys.type)) if others else keys
