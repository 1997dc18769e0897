"""Extract the registered domain of web and email addresses, for whole columns.

The Public Suffix List is the copy bundled with tldextract; nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common.text import hidden_in
from outreach_frames.identity.cells import (
    QUOTES,
    STOPS,
    Cells,
    Reading,
    drop_names,
    is_word,
    plain_text,
    read_cells,
    reading_of,
)

if TYPE_CHECKING:
    from tldextract import ExtractResult

LONGEST_HOST: Final = 253
# Builders whose customers have a host each, such as ada.wordpress.com.
_BUILDER_HOSTS: Final = (
    "business.site canva.site godaddysites.com jimdo.com jimdofree.com jimdosite.com "
    "mystrikingly.com site123.me squarespace.com strikingly.com tilda.ws tumblr.com ueniweb.com "
    "ukit.me webador.com webnode.com webnode.page weebly.com weeblysite.com wix.com wordpress.com"
)
_BUILDERS: Final = frozenset(_BUILDER_HOSTS.split())
# Hosts of many companies' pages: social networks and link lists.
_PAGE_HOSTS: Final = (
    "about.me beacons.ai behance.net bio.link bit.ly bsky.app campsite.bio facebook.com fb.com "
    "fb.me g.page goo.gl google.com/maps instagram.com linktr.ee lnk.bio ok.ru pinterest.com "
    "reddit.com sites.google.com t.me taplink.cc threads.com threads.net tiktok.com "
    "tripadvisor.com twitter.com vk.com wa.me weibo.com x.com yelp.com youtu.be youtube.com"
)
# The professional network's hosts.
_NETWORK: Final = rf"{spec.NETWORK_NAME}(?:\.[a-z]+)+"
_CACHED_HOSTS: Final = 10_000

# Frequent forms of web and email addresses that need no parser.
_LETTER: Final = r"a-z\x80-\x{10ffff}"
_SIMPLE_HOST: Final = rf"(?:[0-9{_LETTER}][0-9{_LETTER}-]*\.)+[{_LETTER}]{{2,}}"
_PARAMETERS: Final = r"[a-z0-9_~.%=&+?#/-]*"
_SIMPLE: Final = (
    rf"\A\s*(?:https?://(?P<url>{_SIMPLE_HOST})(?:[/?#]{_PARAMETERS})?|"
    rf"(?:[a-z0-9._+-]+@)?(?P<host>{_SIMPLE_HOST})(?:/[a-z0-9_~/-]*)?(?:[?#]{_PARAMETERS})?)\s*\z"
)
_INTERNATIONAL_HOST: Final = re.compile(r"(?:\w[\w-]*\.)+\w+")
_SCHEME: Final = re.compile(r"//|https?:?/+|[a-z][a-z0-9+-]*://|mailto:", re.IGNORECASE)
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?:{_LABEL}\.)+(?:[a-z]{{2,63}}|xn--[a-z0-9-]{{1,59}})")
# File name suffixes that are not top-level domains.
_ENDINGS: Final = "htm html php asp aspx jsp pdf png jpg jpeg gif doc docx xls xlsx csv txt"
_FILES: Final = tuple(f".{ending}" for ending in _ENDINGS.split())
_BETWEEN: Final = re.compile(
    r"""
    [\s;,|<>"()\[\]{}\\\u201c\u201d\u201e]+
  | (?<=[^=?&#]) (?=https?:/)   # a URL after `=` is a parameter's value
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Matches "ann@x", "x/", "https://x" and "www.x"; does not match "x.example" and "Dr.Smith".
_LIKE_ADDRESS: Final = re.compile(r"(?i)@|[^/]/|://|\Awww\.")
_WWW: Final = "www."


def domain_keys(texts: pa.Array) -> pa.Array:
    """Return each text's registered domain; missing if a text has no domain or several.

    >>> domain_keys(pa.array(["https://blog.acme.co.uk/x", "Anna@Acme.co.uk", "co.uk"])).to_pylist()
    ['acme.co.uk', 'acme.co.uk', None]
    """
    return domain_cells(texts).single_keys()


def domain_cells(texts: pa.Array) -> Cells:
    """Read the registered domains of each text."""
    texts = texts.cast(pa.large_string())
    encoded = texts.dictionary_encode()
    parts = pc.extract_regex(pc.ascii_lower(encoded.dictionary), _SIMPLE)
    of_urls, of_addresses = parts.flatten()
    hosts = pc.if_else(pc.equal(of_urls, ""), of_addresses, of_urls).dictionary_encode()
    domains = [*map(_simple_domain, hosts.dictionary.to_pylist())]
    keys = pa.array(domains, pa.large_string()).take(hosts.indices).take(encoded.indices)
    return read_cells(keys, texts, domains_in)


def domains_in(text: str) -> Reading:
    """Read the registered domains of the web and email addresses in a text.

    >>> domains_in("anna@acme.com; https://beta.co.uk").keys, domains_in("Dr.Smith, Ulm").keys
    (['acme.com', 'beta.co.uk'], [])
    """
    plain = drop_names(plain_text(text))
    tokens = [token.strip(QUOTES).rstrip(STOPS) for token in _BETWEEN.split(plain)]
    keys: list[str] = []
    # In a sentence, a single word with a dot may be an abbreviation.
    is_list, is_address = True, False
    for token in filter(None, tokens):
        domain = _domain(_host(token)) or ""
        is_like_address = _LIKE_ADDRESS.search(token) is not None
        is_address |= is_like_address and bool(domain)
        is_list &= bool(domain)
        if domain or is_like_address or is_word(token):
            keys.append(domain)
    return reading_of(text, keys if is_list or is_address or len({*keys} - {""}) > 1 else [])


def are_pages(texts: pa.Array, keys: pa.Array) -> pa.Array:
    """Return whether each text has a page, and the domain `keys` is that of the page's host.

    >>> texts = pa.array(["https://www.facebook.com/ada", "facebook.com", "ada.wordpress.com/x"])
    >>> are_pages(texts, domain_keys(texts)).to_pylist()
    [True, False, False]
    """
    hosts = [*_BUILDERS, *_PAGE_HOSTS.split()]
    domains = {registered_domain(host.partition("/")[0]) for host in hosts}
    known = "|".join(map(re.escape, filter(None, domains)))
    may_be = pc.match_substring_regex(keys, rf"\A(?:{known}|{_NETWORK})\z").fill_null(False)
    pages = "|".join([*map(re.escape, hosts), _NETWORK])
    pattern = rf"(?i)\b(?:{pages})\.?(?::\d+)?/+[^\s/?#]"
    is_page = pc.match_substring_regex(texts.filter(may_be), pattern)
    return pc.replace_with_mask(may_be, may_be, is_page)


def _host(text: str) -> str:
    """Return an address's host in lower-case ASCII, or an empty text without a host."""
    scheme = _SCHEME.match(text)
    try:
        parts = urlsplit(f"//{text[scheme.end() :] if scheme else text}")
        # An invalid port raises ValueError; an empty port means a second scheme: https://https://.
        host = (parts.hostname or "") if parts.port or not parts.netloc.endswith(":") else ""
        # A second email after a slash cannot be the path of the first.
        if parts.netloc.count("@") > 1 or ("@" in parts.netloc and "@" in parts.path):
            return ""
        # Without a scheme, acme.com/beta.de may list two companies; medium.com/@acme.com does not.
        path = "" if scheme or "@" in parts.path else parts.path.strip("/")
        if _extract()(path).top_domain_under_public_suffix:
            return ""
        if not host.isascii():
            import idna  # noqa: PLC0415 - slow to import, rarely needed

            host = idna.encode(host, uts46=True).decode()
    except ValueError:
        return ""
    return host.lower().removesuffix(".")


def _simple_domain(host: str) -> str | None:
    if host.isascii():
        return _domain(host)
    is_plain = _INTERNATIONAL_HOST.fullmatch(host) is not None and not hidden_in(host)
    return _domain(_host(host)) if is_plain else None


def _domain(host: str) -> str | None:
    if len(host) > LONGEST_HOST or ".." in host or host.endswith(_FILES):
        return None
    domain = registered_domain(host)
    if not domain or not _DOMAIN.fullmatch(domain):
        return None
    if not domain.startswith(_WWW):
        return domain
    # www.nhs.uk is a public suffix's site, not a registered domain; www.de is registered.
    suffix = _extract()(domain).suffix
    return domain if suffix and "." not in suffix else None


@cache
def _extract() -> Callable[[str], ExtractResult]:
    from tldextract import TLDExtract  # noqa: PLC0415 - slow to import, not needed for reads

    extract = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
    return extract.extract_str


@lru_cache(_CACHED_HOSTS)
def registered_domain(host: str) -> str | None:
    """Return the registered domain of a host, None for a public suffix."""
    parts = _extract()(host)
    if parts.suffix:
        domain = parts.top_domain_under_public_suffix
        customer = parts.subdomain.rpartition(".")[2] if domain in _BUILDERS else ""
        return domain or None if customer in ("", "www") else f"{customer}.{domain}"
    # An unlisted top-level domain, as in an intranet, is a suffix too.
    labels = host.split(".")[-2:]
    return ".".join(labels) if len(labels) > 1 else None
