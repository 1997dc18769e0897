"""Extract the registered domain of web and email addresses, for whole columns.

Uses the snapshot of the Public Suffix List bundled with tldextract; nothing is downloaded.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from tldextract import TLDExtract

LONGEST_HOST: Final = 253
_CACHED_HOSTS: Final = 10_000

# The most frequent shape of a web or email address, which needs no parser.
_SIMPLE: Final = (
    r"\A\s*(?:https?://|[a-z0-9._+-]+@)?(?P<host>(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,})"
    r"(?:/[a-z0-9_~./-]*)?\s*\z"
)
_SCHEME: Final = re.compile(r"//|https?:?/+|[a-z][a-z0-9+.-]*://|mailto:", re.IGNORECASE)
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?:{_LABEL}\.)+(?:[a-z]{{2,63}}|xn--[a-z0-9-]{{1,59}})")


def domain_keys(texts: pa.Array) -> pa.Array:
    """Return the registered domain of each text, missing if it has none.

    >>> domain_keys(pa.array(["https://blog.acme.co.uk/x", "Anna@Acme.co.uk", "co.uk"])).to_pylist()
    ['acme.co.uk', 'acme.co.uk', None]
    """
    encoded = texts.cast(pa.large_string()).dictionary_encode()
    distinct = encoded.dictionary
    simple = pc.struct_field(pc.extract_regex(pc.ascii_lower(distinct), _SIMPLE), 0)
    domains = [
        _domain(host if host is not None else _host(text))
        for host, text in zip(simple.to_pylist(), distinct.to_pylist(), strict=True)
    ]
    return pa.array(domains, pa.large_string()).take(encoded.indices)


def _host(text: str) -> str:
    """Return the host of an address in ASCII and lower case, empty if it has none."""
    text = text.strip()
    scheme = _SCHEME.match(text)
    try:
        host = urlsplit(f"//{text[scheme.end() :] if scheme else text}").hostname or ""
        if not host.isascii():
            import idna  # noqa: PLC0415 - slow to import, rarely needed

            host = idna.encode(host, uts46=True).decode()
    except ValueError:
        return ""
    return host.lower().removesuffix(".")


def _domain(host: str) -> str | None:
    if len(host) > LONGEST_HOST or ".." in host:
        return None
    domain = registered_domain(host)
    return domain if domain and _DOMAIN.fullmatch(domain) else None


class _Rules(NamedTuple):
    """The extractor, and the rules of its list without the markers `!` and `*.`."""

    extract: TLDExtract
    suffixes: frozenset[str]
    parents_of_wildcards: frozenset[str]


@cache
def _rules() -> _Rules:
    from tldextract import TLDExtract  # noqa: PLC0415 - slow to import, not needed for reads

    extract = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    suffixes = extract.tlds
    return _Rules(
        extract,
        frozenset(suffix.lstrip("!") for suffix in suffixes),
        frozenset(suffix[2:] for suffix in suffixes if suffix.startswith("*.")),
    )


@lru_cache(_CACHED_HOSTS)
def registered_domain(host: str) -> str | None:
    """Return the registered domain of a host, None for a public suffix."""
    parent = host.partition(".")[2]
    if not parent:
        return None
    rules = _rules()
    if host in rules.suffixes or parent in rules.parents_of_wildcards or "xn--" in host:
        found = rules.extract.extract_str(host)
        if found.suffix:
            return found.top_domain_under_public_suffix or None
    # No rule names this host, so its parent decides. An unlisted top-level domain, such as that of
    # an intranet, is a suffix too.
    return registered_domain(parent) or host
