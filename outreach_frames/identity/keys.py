"""Keys of people: email addresses and profile URLs in one normalised form, never sent.

A profile URL `/in/<name>` is a certain identifier; its key is the host and that path. Every other
URL is a weak one; its key is the whole URL and begins with `https://`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, unquote_to_bytes, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.text import BLANKS
from outreach_frames.identity.domains import LONGEST_HOST, registered_domain

# Addresses of the plain and frequent shape, whose normal form needs no library: ASCII, and short
# enough that no part of them can be too long.
SIMPLE_EMAIL: Final = (
    r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*\.[A-Za-z]{2,}"
)
SIMPLE_EMAIL_LENGTH: Final = 64

# Profile URLs whose host needs no label removed except `www`.
_SIMPLE_PROFILE: Final = (
    r"(?:[Hh][Tt][Tt][Pp][Ss]?://)?(?:[Ww][Ww][Ww]\.)?"
    r"[A-Za-z0-9-]{4,}(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]+/[Ii][Nn]/[A-Za-z0-9_~.-]*[A-Za-z0-9]/*"
)
_UNCERTAIN: Final = "https://"
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DEFAULT_PORTS: Final = frozenset({None, 80, 443})
# The same page for a phone, or for people of a country.
_MIRROR: Final = re.compile(r"www|m|[a-z]{2}")
_LOCALE: Final = re.compile(r"[a-z]{2}(?:[-_][a-z]{2})?", re.IGNORECASE)
_PROFILE_FOLDER: Final = "in"
_NAME: Final = re.compile(r"[^\s/?#;@:%&=+\\<>\"|^`{}\[\]!*()$,\ufffd]+")
# Names in a profile's path that mean the visitor, or that programs write for a missing value.
_PLACEHOLDER_NAMES: Final = ("me", "nan", "none", "null", "undefined", "unknown")
# Every placeholder matches, and few other URLs do.
_MAY_BE_PLACEHOLDER: Final = (
    rf"(?i)/in/*(?:[?#]|\s*\z|/(?:[^/?#]*%|{'|'.join(_PLACEHOLDER_NAMES)}))"
)
# Parameters that tell where a link was found, or in which language to show the page.
_TRACKING: Final = re.compile(
    r"utm_\w+|_hs\w+|vero_\w+|trk\w*|dclid|fbclid|gclid|msclkid|twclid|yclid|gbraid|wbraid|igshid|"
    r"mc_cid|mc_eid|mkt_tok|s_kwcid|tracking_?id|ref|ref_?id|ref_src|ref_url|referr?er|from|source|"
    r"src|shared?|si|original_?referr?er|original_?subdomain|lipi|licu|lici|mini_?profile_?urn|"
    r"mid_?token|mid_?sig|locale|lang|language|hl",
    re.IGNORECASE,
)
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
# What has a meaning of its own in a URL, and the mark of what is encoded.
_RESERVED: Final = ":/?#[]@!$&'()*+,;=%"


def email_key(text: str) -> str:
    """Return an address as addresses are compared; an empty text where it is not an address.

    Case makes no difference, nor does the way that the domain is written.

    >>> email_key(" Anna@Bücher.example "), email_key("anna@xn--bcher-kva.example")
    ('anna@bücher.example', 'anna@bücher.example')
    """
    text = text.strip(BLANKS)
    if len(text) <= SIMPLE_EMAIL_LENGTH and re.fullmatch(SIMPLE_EMAIL, text, re.ASCII):
        return text.lower()
    if "@" not in text:
        return ""
    from email_validator import (  # noqa: PLC0415 - slow to import, and reads need none
        EmailNotValidError,
        validate_email,
    )

    try:
        address = validate_email(
            text,
            check_deliverability=False,
            globally_deliverable=False,
            allow_quoted_local=True,
            allow_domain_literal=True,
        )
    except EmailNotValidError:
        return ""
    return address.normalized.lower()


def profnet_url_key(text: str) -> str:
    """Return a profile's URL as these are compared; an empty text where it is not such a URL.

    Of `/in/<name>` count the name and the host, without `www`, `m` or a country's two letters.
    Locale endings, tracking parameters, fragments and doubled slashes make no difference. Any other
    URL counts as a whole, with scheme, default port and percent-encoding in one form. A placeholder
    has no key.

    >>> profnet_url_key("https://de.Profnet.example/in/Anna/?utm_source=mail#top")
    'profnet.example/in/anna'
    >>> profnet_url_key("profnet.example/view?id=7")
    'https://profnet.example/view?id=7'
    """
    text = unicodedata.normalize("NFC", text.strip(BLANKS))
    if " " in text or not text.isprintable():
        return ""
    parts = _split(text)
    if parts is None:
        return ""
    host, port = _host(parts.hostname or ""), parts.port
    if not host or "@" in parts.netloc or parts.scheme not in {"", "http", "https"}:
        return ""
    path = parts.path.rstrip("/")
    if not (path or parts.query or parts.fragment) or _names_nobody(parts):
        return ""
    is_default = port in _DEFAULT_PORTS
    if is_default and (name := _profile_name(parts)):
        return f"{_main_host(host)}/{_PROFILE_FOLDER}/{name}"
    where = host if is_default else f"{host}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{_UNCERTAIN}{where}{_encoded(f'{path}{query}{fragment}')}"


def page_forms(url: str) -> tuple[str, ...]:
    """Return a page's URL as given, and in the forms in which others may have written it.

    >>> page_forms("profnet.example/company/acme/?trk=x")[1:]
    ('https://profnet.example/company/acme', 'https://www.profnet.example/company/acme')
    """
    try:
        parts = urlsplit(url if _SCHEME.match(url) else f"https://{url}")
    except ValueError:
        return (url,)
    if parts.scheme not in {"http", "https"}:
        return (url,)
    host = parts.netloc.lower().removeprefix("www.")
    kept = [
        part for part in parts.query.split("&") if not _TRACKING.fullmatch(part.partition("=")[0])
    ]
    page = parts._replace(scheme="https", path=parts.path.rstrip("/"), query="&".join(kept))
    plain = (page._replace(netloc=f"{www}{host}").geturl() for www in ("", "www."))
    return tuple(dict.fromkeys([url, *plain]))


def is_certain(key: str) -> bool:
    """Whether a profile URL's key is a certain identifier.

    >>> is_certain("profnet.example/in/anna"), is_certain("https://profnet.example/view?id=7")
    (True, False)
    """
    return bool(key) and not key.startswith(_UNCERTAIN)


def email_keys(texts: pa.Array) -> pa.Array:
    """Return `email_key` of a column of texts, missing where there is none."""
    texts = texts.cast(pa.large_string())
    return _with_rest(pc.ascii_lower(texts), texts, are_simple_emails(texts), email_key)


def are_simple_emails(texts: pa.Array) -> pa.Array:
    """Return, for a column, whether each text is of the plain shape; missing stays missing."""
    return pc.and_(
        pc.match_substring_regex(texts, rf"\A(?:{SIMPLE_EMAIL})\z"),
        pc.less_equal(pc.binary_length(texts), SIMPLE_EMAIL_LENGTH),
    )


def profnet_url_keys(texts: pa.Array) -> pa.Array:
    """Return `profnet_url_key` of a column of texts, missing where there is none."""
    texts = texts.cast(pa.large_string())
    bare = pc.replace_substring_regex(pc.ascii_lower(texts), r"\A(https?://)?(www\.)?", "")
    keys = pc.ascii_rtrim(bare, "/")
    is_simple = pc.match_substring_regex(texts, rf"\A(?:{_SIMPLE_PROFILE})\z")
    for name in _PLACEHOLDER_NAMES:
        is_simple = pc.and_not(is_simple, pc.ends_with(keys, f"/{name}"))
    return _with_rest(keys, texts, is_simple, profnet_url_key)


def are_placeholder_urls(texts: pa.Array) -> pa.Array:
    """Return, for a column, whether each text is a profile URL that identifies nobody.

    >>> are_placeholder_urls(pa.array(["x.example/in/NaN/?a=1", "x.example/in/na"])).to_pylist()
    [True, False]
    """
    may_be = pc.match_substring_regex(texts, _MAY_BE_PLACEHOLDER).fill_null(False)
    found = [
        (parts := _split(text.strip(BLANKS))) is not None and _names_nobody(parts)
        for text in texts.filter(may_be).to_pylist()
    ]
    return pc.replace_with_mask(may_be, may_be, pa.array(found, pa.bool_()))


def certain_keys(keys: pa.Array) -> pa.Array:
    """Keep the certain keys of profile URLs; others become missing."""
    return pc.if_else(pc.starts_with(keys, _UNCERTAIN), pa.scalar(None, keys.type), keys)


def filled_texts(texts: pa.Array) -> pa.Array:
    """Make blank texts missing.

    >>> filled_texts(pa.array(["Acme", " "])).to_pylist()
    ['Acme', None]
    """
    is_blank = pc.equal(pc.utf8_trim(texts, BLANKS), "")
    return pc.if_else(is_blank, pa.scalar(None, texts.type), texts)


def company_url_keys(texts: pa.Array) -> pa.Array:
    """Return the form in which companies' profile URLs are compared, ignoring case."""
    return pc.utf8_lower(profnet_url_keys(texts))


def company_name_keys(texts: pa.Array) -> pa.Array:
    """Return the form in which companies' names are compared: case and outer blanks say nothing.

    >>> company_name_keys(pa.array([" Acme AG", "ACME ag"])).to_pylist()
    ['acme ag', 'acme ag']
    """
    names = pc.utf8_normalize(pc.utf8_trim(texts.cast(pa.large_string()), BLANKS), form="NFC")
    return pc.utf8_lower(names)


def _with_rest(
    keys: pa.Array, texts: pa.Array, is_simple: pa.Array, key: Callable[[str], str]
) -> pa.Array:
    """Put the keys of the texts that are not simple in their places."""
    rest = pc.invert(is_simple).fill_null(False)
    others = texts.filter(rest).dictionary_encode()
    if not len(others):
        return keys
    known = [key(text) or None for text in others.dictionary.to_pylist()]
    return pc.replace_with_mask(keys, rest, pa.array(known, keys.type).take(others.indices))


def _host(name: str) -> str:
    """Return a host in ASCII, without `www`; an empty text where it has one label alone."""
    if not name.isascii():
        import idna  # noqa: PLC0415 - slow to import, and seldom needed

        # An invalid domain is compared as it is written.
        with suppress(idna.IDNAError):
            name = idna.encode(name, uts46=True).decode()
    host = name.rstrip(".")
    short = host.removeprefix("www.")
    labels = host.split(".")
    is_host = len(labels) > 1 and all(labels) and len(host) <= LONGEST_HOST
    return (short if "." in short else host) if is_host else ""


def _split(text: str) -> SplitResult | None:
    """Return the parts of a URL, None where it cannot be parsed."""
    try:
        parts = urlsplit(text if _SCHEME.match(text) else f"//{text}")
        _ = parts.port
    except ValueError:
        return None
    return parts


def _main_host(host: str) -> str:
    """Return a host without the labels of its mirrors, but never without what was registered."""
    label, _, rest = host.partition(".")
    while _MIRROR.fullmatch(label) and registered_domain(rest) is not None:
        host = rest
        label, _, rest = host.partition(".")
    return host


def _profile_name(parts: SplitResult) -> str:
    """Return the name in a profile's URL, where that is a certain identifier."""
    folder, *names = _segments(parts)
    if len(names) == 2 and _LOCALE.fullmatch(names[1]):
        del names[1]
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    if (
        folder.lower() != _PROFILE_FOLDER
        or len(names) != 1
        or not all(_TRACKING.fullmatch(name) for name, _ in parameters)
    ):
        return ""
    name = _decoded(names[0])
    return name if _NAME.fullmatch(name) and any(map(str.isalnum, name)) else ""


def _names_nobody(parts: SplitResult) -> bool:
    """Whether a URL leads to the folder of profiles, or to a placeholder in it."""
    folder, *names = _segments(parts)
    return folder.lower() == _PROFILE_FOLDER and (
        not names or _decoded(names[0]).strip() in ("", *_PLACEHOLDER_NAMES)
    )


def _segments(parts: SplitResult) -> list[str]:
    return [part for part in parts.path.split("/") if part] or [""]


def _decoded(segment: str) -> str:
    return unicodedata.normalize("NFC", unquote(segment)).lower()


def _encoded(text: str) -> str:
    """Return part of a URL with everything percent-encoded that must be, and nothing else."""
    every = quote(text, safe=_RESERVED, errors="surrogatepass")
    return _ENCODED.sub(lambda code: quote(unquote_to_bytes(code[0]), safe=""), every)
