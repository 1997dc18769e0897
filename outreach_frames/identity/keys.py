"""Normalise emails, profile URLs and company names to keys for comparison, never for sending.

A profile URL `/in/<name>`, with or without further segments, is a certain identifier. Its key is
the host, without the labels `www`, `m` or a country code, and `/in/<name>`. Further segments, the
query and the fragment are ignored. Any other URL is a weak identifier. Its key is the whole URL
with normalised scheme, port and percent-encoding, and begins with `https://`. A placeholder has no
key.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, quote, unquote, unquote_to_bytes

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames.common.placeholders import (
    PLACEHOLDER_EMAILS,
    PLACEHOLDER_NAMES,
    are_companies,
)
from outreach_frames.common.text import BLANKS, hidden_in, strip_blanks, visible
from outreach_frames.common.web_addresses import split_address
from outreach_frames.identity.cells import (
    QUOTES,
    STOPS,
    Cells,
    Reading,
    are_plain,
    drop_names,
    is_word,
    plain_text,
    read_cells,
    reading_of,
)
from outreach_frames.identity.domains import LONGEST_HOST, registered_domain
from outreach_frames.tables.value_text import compose_texts, hidden_in_texts, strip_texts

# A frequent form of email that is normalised without a library: ASCII, and too short for any part
# to exceed its limit.
SIMPLE_EMAIL: Final = (
    r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*\.[A-Za-z]{2,}"
)
SIMPLE_EMAIL_LENGTH: Final = 64

# Texts in lower case whose host is normalised once per distinct host. Each next character decides
# which part it belongs to, because only such patterns return their groups quickly.
_IN_HOST: Final = r"[a-z0-9.\x80-\x{10ffff}-]"
# Splits "ann@x.example" into "ann" and "@x.example".
_EMAIL_PARTS: Final = rf"\A(?P<name>[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*)(?P<host>@{_IN_HOST}+)\z"
# Splits "https://x.example/in/ann/?a=1" into "https://x.example/in/" and "ann".
_PROFILE_PARTS: Final = (
    rf"\A(?P<host>(?:{_IN_HOST}|://)+/in/)(?P<name>[a-z0-9_~.%-]+)(?:[/?#][a-z0-9_~.%=&+?#/-]*)?\z"
)
_PLAIN_HOST: Final = re.compile(r"(?:@|(?:https?://)?)(?:[\w-]+\.)+[\w-]*\w(?:/in/)?")
_WEAK_PREFIX: Final = "https://"
_DEFAULT_PORTS: Final = frozenset({None, 80, 443})
# Host labels of mobile and country versions of the same page.
_MIRROR: Final = re.compile(r"www|m|[a-z]{2}")
_PROFILE_FOLDER: Final = "in"
_NAME: Final = re.compile(r"[^\s/?#;@:%&=+\\<>\"|^`{}\[\]!*()$,\ufffd]+")
# A fast pattern that matches every placeholder and few other URLs; it needs the hidden characters.
# Matches "x.example/in/" and "x.example/%69n/NaN?a=1"; not "x.example/in/ann", "x.example/inn/me".
_MAY_BE_PLACEHOLDER: Final = (
    r"(?i)/(?:i|%[46]9)(?:n|%[46]e)/*"  # the folder `in`, also percent-encoded
    r"(?:[?#]|\s*\z|"  # without a name
    rf"/(?:[^/?#]*[%{BLANKS}{{}}]|{'|'.join(PLACEHOLDER_NAMES)}))"  # or with one that may be none
)
# Query parameters for tracking or the page's language.
_TRACKING: Final = re.compile(
    r"utm_\w+|_hs\w+|vero_\w+|trk\w*|dclid|fbclid|gclid|msclkid|twclid|yclid|gbraid|wbraid|igshid|"
    r"mc_cid|mc_eid|mkt_tok|s_kwcid|tracking_?id|ref|ref_?id|ref_src|ref_url|referr?er|from|source|"
    r"src|shared?|si|original_?referr?er|original_?subdomain|lipi|licu|lici|mini_?profile_?urn|"
    r"mid_?token|mid_?sig|locale|lang|language|hl",
    re.IGNORECASE,
)
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")
# Signs around an email that belong to the text.
_EMAIL_EDGES: Final = f"{QUOTES}{STOPS}/=&#~-\u2013\u2014\u2022\xb7"
_BETWEEN_EMAILS: Final = re.compile(r"[\s<>()\[\]{},;:|\"\\\u201c\u201d\u201e\xab\xbb]+")
_IN_URL: Final = re.compile(r"[/?#&=]")
# The query of a link, such as `?subject=Hi` in "mailto:ann@x.example?subject=Hi".
_MAILTO_QUERY: Final = re.compile(
    r"(?i)(mailto:[^\s?:;|<>()\"]*(?:@|%40)[\w.-]+)\?[^\s;,|<>()\"/]*"
)
_ENCODED_DELIMITER: Final = re.compile(r"(?i)%(?:20|22|2c|3b|3c|3e|40)")
# A line break or tab that a program wrote as `\n` or `\t` between two emails or URLs. Matches in
# "ann@x.example (work);\nbo@x.example"; does not match in "CORP\nina@x.example".
_ESCAPED_BREAK_OF_EMAILS: Final = re.compile(
    r"(@[\w.-]+(?:[^\\@]*[^\\@\w.-])?)(?:\\[nrt])+(?=[^\s\\@]*@)"
)
_ESCAPED_BREAK_OF_URLS: Final = re.compile(r"(/[^\\/]*)(?:\\[nrt])+(?=[^\s\\/]*/)")
# Splits "x.example/a,y.example/b" and "x.example/ahttps://y.example/b"; does not split
# "x.example/a,b" and "x.example/?to=https://y.example".
_BETWEEN_URLS: Final = re.compile(
    r"""
    [\s<>"\\]+
  | (?<![;,|]) [;,|]++ (?= https?: | www\. | [\w-]+ (?:\.[\w-]+)+ / )   # only before another URL
  | (?<=[^=?&#]) (?=https?:/)                              # a URL after `=` is a parameter's value
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Placeholders that splitting a text or dropping its invisible characters would remove. Matches
# in "x.example/in/<NA>" and "x.example/in/\u200b/"; does not match in "x.example/in/é" and "<na>".
_ODD_NAME: Final = re.compile(
    r"""
    (?<=/in/)
    (?: <na>
      | ([^\x00-\x7f]+) (?=/)   # no ASCII characters up to the next slash
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Matches "x.example/ann" and "https://ann"; not "ann", "in/ann.b" or "2/3".
_LIKE_URL: Final = re.compile(r"://|\A[^/.]*\.[^/]*/")
_INSIDE_WORDS: Final = "[.'\N{RIGHT SINGLE QUOTATION MARK}]"
_BETWEEN_WORDS: Final = r"[\pP\s|®™©`\x{b4}]+"
# Legal forms of companies, in lower case without punctuation. These may follow a name.
_LEGAL_FORMS: Final = "|".join(
    (
        "inc|incorporated|corp|corporation|co|company|ltd|limited|llc|llp|lp|plc|pllc|dac|pty|pte",
        "pvt|private|public limited company|public company limited|pcl|gmbh|mbh|ag|kg|kgaa|ohg|ug",
        "haftungsbeschränkt|se|ev|eg|gbr|ek|sa|sas|sasu|sarl|sà ?rl|srl|srls|snc|spa|sl|slu|lda",
        "ltda|de cv|sab|bv|bvba|cvba|vof|sprl|nv|ab|as|a s|asa|aps|oy|oyj|oü|sia|uab|mb|sro",
        "sp z oo|spzoo|kft|zrt|doo|ood|eood|ad|ae|epe|aş|şti|anonim şirketi|limited şirketi|tbk",
        "persero|kk|gk|pt|sae|fz|tov|sdn|bhd|jsc|pjsc|cjsc|ojsc|ooo",
        "ооо|пао|оао|зао|ао|тов|оод|еоод|ад|доо|αε|επε|ικε|จำกัด|มหาชน",
    )
)
_FORMS_BEHIND: Final = rf"\A(.+?)(?: (?:{_LEGAL_FORMS}))+\z"
# These are no words of a name, so they may be on either side of it, also without a blank.
_JOINED_FORMS: Final = (
    "株式会社|有限会社|合同会社|[㈱㈲㈜]|[(（](?:株|有|주|유)[)）]|주식회사|유한회사"
)
_JOINED: Final = rf"\A\s*(?:{_JOINED_FORMS})|(?:{_JOINED_FORMS})\s*\z"
_EDGES: Final = r"\A ?(?:(?:ооо|пао|оао|зао|ао|тов|บริษัท) )?| \z"
# In front of a name, other forms may be words of the name: they are followed by a quoted name, or
# belong to a form behind it. Matches in 'SIA "Rimi"', "pt astra tbk"; not in "sia partners".
_FORM_BEFORE_QUOTED: Final = r"\A(?:sia|uab|oü|oy|pt|s\.?\s?c\.?)\s*([\"'„‚\p{Pi}\p{Pf}])"
_FORMS_AROUND: Final = (
    r"\A(?:oy (.+) ab|pt (.+?)(?: persero)? tbk|pt (.+) persero|sc (.+) (?:srl|sa|snc|scs))\z"
)
# URL delimiters, and the percent sign.
_RESERVED: Final = ":/?#[]@!$&'()*+,;=%"


def email_key(text: str) -> str:
    """Return the normalised key of an email, ignoring case; empty for any other text.

    >>> email_key(" Anna@Bücher.example "), email_key("anna@xn--bcher-kva.example")
    ('anna@bücher.example', 'anna@bücher.example')
    """
    text = strip_blanks(text)
    if len(text) <= SIMPLE_EMAIL_LENGTH and re.fullmatch(SIMPLE_EMAIL, text, re.ASCII):
        return "" if text.lower() in PLACEHOLDER_EMAILS else text.lower()
    if "@" not in text[1:-1] or hidden_in(text):
        return ""
    from email_validator import (  # noqa: PLC0415 - slow to import, not needed for reads
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
    """Return the normalised key of a profile URL; empty for placeholders and invalid URLs.

    >>> profnet_url_key("https://de.Profnet.example/in/Anna/?utm_source=mail#top")
    'profnet.example/in/anna'
    >>> profnet_url_key("profnet.example/view?id=7")
    'https://profnet.example/view?id=7'
    """
    text = unicodedata.normalize("NFC", strip_blanks(text))
    if " " in text or not text.isprintable() or hidden_in(text):
        return ""
    parts = split_address(text)
    if parts is None:
        return ""
    host, port = _host(parts.hostname or ""), parts.port
    if not host or "@" in parts.netloc or parts.scheme not in {"", "http", "https"}:
        return ""
    path = parts.path.rstrip("/")
    if not (path or parts.query or parts.fragment) or _is_placeholder(parts):
        return ""
    is_default = port in _DEFAULT_PORTS
    if is_default and (name := _profile_name(parts)):
        return f"{_main_host(host)}/{_PROFILE_FOLDER}/{name}"
    where = host if is_default else f"{host}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{_WEAK_PREFIX}{where}{_encoded(f'{path}{query}{fragment}')}"


def url_variants(url: str) -> tuple[str, ...]:
    """Return a URL unchanged, then its forms free of tracking, without and with `www`.

    >>> url_variants("profnet.example/company/acme/?trk=x")[1:]
    ('https://profnet.example/company/acme', 'https://www.profnet.example/company/acme')
    """
    parts = split_address(url)
    if parts is None or parts.scheme not in {"", "http", "https"}:
        return (url,)
    host = parts.netloc.lower().removeprefix("www.")
    kept = [
        part for part in parts.query.split("&") if not _TRACKING.fullmatch(part.partition("=")[0])
    ]
    page = parts._replace(scheme="https", path=parts.path.rstrip("/"), query="&".join(kept))
    plain = (page._replace(netloc=f"{www}{host}").geturl() for www in ("", "www."))
    return tuple(dict.fromkeys([url, *plain]))


def is_certain(key: str) -> bool:
    """Return whether a profile URL's key is a certain identifier.

    >>> is_certain("profnet.example/in/anna"), is_certain("https://profnet.example/view?id=7")
    (True, False)
    """
    return bool(key) and not key.startswith(_WEAK_PREFIX)


def emails_in(text: str) -> Reading:
    """Read the emails in a text, also from lists, links and texts with display names.

    >>> emails_in('"Berg, Ann" <ann@x.example>, mailto:bo@x.example?subject=Hi')
    Reading(keys=['ann@x.example', 'bo@x.example'], is_ambiguous=False)
    >>> emails_in("ann berg@x.example")
    Reading(keys=['berg@x.example'], is_ambiguous=True)
    """
    plain = plain_text(text)
    # Quoted local parts and IP addresses may contain characters that elsewhere separate emails.
    if ('"' in plain or "[" in plain) and (key := email_key(plain)):
        return Reading([key], False)
    plain = _ESCAPED_BREAK_OF_EMAILS.sub(r"\1\n", plain)
    plain = _ENCODED_DELIMITER.sub(lambda code: unquote(code[0]), _MAILTO_QUERY.sub(r"\1", plain))
    is_url = "//" in plain
    keys = []
    for token in _BETWEEN_EMAILS.split(drop_names(plain)):
        # A sign at its start may belong to an address: -ada@x.example is not ada@x.example.
        email = token.strip(QUOTES)
        if is_url or not email_key(email):
            email = token.strip(_EMAIL_EDGES)
            parts = [part.strip(_EMAIL_EDGES) for part in _IN_URL.split(email) if is_word(part)]
        else:
            # Text before a slash belongs to a rare local part or is a name: compare both readings.
            parts = [email, email.rpartition("/")[2]]
        # A domain without a dot is from a local network, or truncated.
        is_cut = [email != plain and "." not in part.rpartition("@")[2] for part in parts]
        keys += ["" if cut else email_key(part) for part, cut in zip(parts, is_cut, strict=True)]
    return reading_of(text, keys)


def profnet_urls_in(text: str) -> Reading:
    """Read the profile URLs in a text.

    >>> profnet_urls_in("Profile: https://x.example/in/ann, x.example/in/bo.")
    Reading(keys=['x.example/in/ann', 'x.example/in/bo'], is_ambiguous=False)
    """
    keys = []
    plain = plain_text(_ODD_NAME.sub(lambda name: visible(name[1] or "") or "null", text))
    plain = _ESCAPED_BREAK_OF_URLS.sub(r"\1\n", plain)
    plain = drop_names(plain).strip()
    for token in _BETWEEN_URLS.split(plain):
        closing = "" if "(" in token else ")]}"
        url = token.lstrip(f"{QUOTES}([{{").rstrip(f"{QUOTES}{STOPS}{closing}")
        key = profnet_url_key(url)
        is_placeholder = (
            not key and (parts := split_address(url)) is not None and _is_placeholder(parts)
        )
        if is_placeholder and url == plain:
            return Reading([], False)
        if not is_placeholder and (is_word(token) or _LIKE_URL.search(token)):
            keys.append(key)
    return reading_of(text, keys)


def email_cells(texts: pa.Array) -> Cells:
    """Read the emails of each text."""
    return read_cells(_fast_email_keys(texts), texts, emails_in)


def profnet_url_cells(texts: pa.Array) -> Cells:
    """Read the profile URLs of each text."""
    return read_cells(_fast_profnet_url_keys(texts), texts, profnet_urls_in)


def email_keys(texts: pa.Array) -> pa.Array:
    """Return each text's `email_key`, or missing."""
    return _first_keys(texts, _fast_email_keys, lambda others: _map_distinct(others, email_key))


def profnet_url_keys(texts: pa.Array) -> pa.Array:
    """Return each text's `profnet_url_key`, or missing."""
    return _first_keys(
        texts, _fast_profnet_url_keys, lambda others: _map_distinct(others, profnet_url_key)
    )


def _first_keys(
    texts: pa.Array, fast: Callable[[pa.Array], pa.Array], slow: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Return each text's key by the fast way, or the slow way if it has none, or missing."""
    texts = texts.cast(pa.large_string())
    keys = fast(texts)
    is_open = pc.and_not(texts.is_valid(), keys.is_valid())
    if len(others := texts.filter(is_open)):
        keys = pc.replace_with_mask(keys, is_open, slow(others))
    return keys


def _fast_email_keys(texts: pa.Array) -> pa.Array:
    """Return the keys of simple emails, also with blanks around or an international domain."""
    return _first_keys(texts, _simple_email_keys, _joined_email_keys)


def _simple_email_keys(texts: pa.Array) -> pa.Array:
    keys, is_simple = pc.ascii_lower(texts), are_simple_emails(texts)
    for address in PLACEHOLDER_EMAILS:
        is_simple = pc.and_not(is_simple, pc.ends_with(keys, address))
    return _keep(keys, is_simple)


def _joined_email_keys(texts: pa.Array) -> pa.Array:
    texts = pc.ascii_lower(strip_texts(texts))
    names, hosts = pc.extract_regex(texts, _EMAIL_PARTS).flatten()
    hosts = _map_distinct(hosts, lambda host: _of_host(email_key, "a", host)[1:])
    keys = pc.binary_join_element_wise(names, hosts, pa.scalar("", names.type))
    is_short = pc.less_equal(pc.binary_length(texts), SIMPLE_EMAIL_LENGTH)
    is_placeholder = pc.is_in(keys, pa.array(PLACEHOLDER_EMAILS, keys.type))
    return _keep(keys, pc.and_not(is_short, is_placeholder))


def _fast_profnet_url_keys(texts: pa.Array) -> pa.Array:
    """Return the keys of frequent forms of profile URLs, with any host and encoded names."""
    texts = pc.ascii_lower(strip_texts(texts.cast(pa.large_string())))
    hosts, names = pc.extract_regex(texts, _PROFILE_PARTS).flatten()
    hosts = _map_distinct(hosts, lambda host: _of_host(profnet_url_key, "", host, "a")[:-1])
    is_whole = pc.match_substring_regex(names, r"[a-z0-9]\z").fill_null(False)
    is_encoded = pc.match_substring(names, "%").fill_null(False)
    decoded = [_name_of(name) or None for name in names.filter(is_encoded).to_pylist()]
    names = pc.replace_with_mask(names, is_encoded, pa.array(decoded, names.type))
    keys = pc.binary_join_element_wise(hosts, names, pa.scalar("", names.type))
    is_placeholder = pc.is_in(names, pa.array(PLACEHOLDER_NAMES, names.type))
    return _keep(keys, pc.and_not(is_whole, is_placeholder))


def _of_host(key: Callable[[str], str], before: str, host: str, behind: str = "") -> str:
    """Return the key of a text with this host, or an empty text if the host needs cleaning."""
    return key(f"{before}{host}{behind}") if _PLAIN_HOST.fullmatch(host) else ""


def _map_distinct(texts: pa.Array, convert: Callable[[str], str]) -> pa.Array:
    """Convert each distinct text once; an empty result becomes missing."""
    encoded = texts.dictionary_encode()
    converted = [convert(text) or None for text in encoded.dictionary.to_pylist()]
    return pa.array(converted, texts.type).take(encoded.indices)


def _keep(texts: pa.Array, mask: pa.Array) -> pa.Array:
    """Replace the texts outside a mask by missing."""
    if pc.all(mask, min_count=0).as_py():
        return texts
    return pc.if_else(mask, texts, pa.scalar(None, texts.type))


def are_simple_emails(texts: pa.Array) -> pa.Array:
    """Return whether each text matches `SIMPLE_EMAIL`; missing stays missing."""
    return pc.and_(
        pc.match_substring_regex(texts, rf"\A(?:{SIMPLE_EMAIL})\z"),
        pc.less_equal(pc.binary_length(texts), SIMPLE_EMAIL_LENGTH),
    )


def are_placeholder_urls(texts: pa.Array) -> pa.Array:
    """Return whether each text is a profile URL whose name is a placeholder.

    >>> are_placeholder_urls(pa.array(["x.example/in/NaN/?a=1", "x.example/in/na"])).to_pylist()
    [True, False]
    """
    pattern = _MAY_BE_PLACEHOLDER.format(hidden_in_texts(texts))
    may_be = pc.match_substring_regex(texts, pattern).fill_null(False)
    is_placeholder = [
        (parts := split_address(strip_blanks(text))) is not None and _is_placeholder(parts)
        for text in texts.filter(may_be).to_pylist()
    ]
    return pc.replace_with_mask(may_be, may_be, pa.array(is_placeholder, pa.bool_()))


def certain_keys(keys: pa.Array) -> pa.Array:
    """Keep profile URLs' certain keys, and replace weak keys by missing."""
    return pc.if_else(pc.starts_with(keys, _WEAK_PREFIX), pa.scalar(None, keys.type), keys)


def filled_texts(texts: pa.Array) -> pa.Array:
    """Replace blank texts by missing.

    >>> filled_texts(pa.array(["Acme", " "])).to_pylist()
    ['Acme', None]
    """
    is_blank = pc.equal(strip_texts(texts), "")
    return pc.if_else(is_blank, pa.scalar(None, texts.type), texts)


def company_url_keys(texts: pa.Array) -> pa.Array:
    """Return the normalised keys of companies' profile URLs, ignoring case."""
    return pc.utf8_lower(profnet_url_keys(texts))


def company_name_keys(texts: pa.Array) -> pa.Array:
    """Return companies' names without case, punctuation and legal form; missing without a word.

    >>> company_name_keys(pa.array(["ACME®, Inc", "PT Acme Tbk", "Co. KG"])).to_pylist()
    ['acme', 'acme', 'co']
    """
    names = pc.utf8_lower(compose_texts(strip_texts(texts.cast(pa.large_string()))))
    names = pc.replace_substring(names, "&amp;", "&")
    for pattern, replacement in (
        (_JOINED, " "),
        (_FORM_BEFORE_QUOTED, r"\1"),
        (_INSIDE_WORDS, ""),
        (_BETWEEN_WORDS, " "),
        (_EDGES, ""),
        (_FORMS_AROUND, r"\1\2\3\4"),
        (_FORMS_BEHIND, r"\1"),
    ):
        names = pc.replace_substring_regex(names, pattern, replacement)
    return pc.if_else(pc.equal(names, ""), pa.scalar(None, names.type), names)


def company_name_cells(texts: pa.Array) -> Cells:
    """Read the company name of each text, or the names of a list."""
    texts = texts.cast(pa.large_string())
    return read_cells(_keep(_company_names(texts), are_plain(texts)), texts, _company_names_in)


def _company_names(texts: pa.Array) -> pa.Array:
    """Return the keys of names; missing for placeholders."""
    keys = filled_texts(company_name_keys(texts))
    return _keep(keys, are_companies(strip_texts(texts)))


def _company_names_in(text: str) -> Reading:
    names = _company_names(pa.array([text], pa.large_string())).drop_null().to_pylist()
    return reading_of(text, [name for name in names if is_word(name)])


def _host(name: str) -> str:
    """Return a host in ASCII without `www`, or an empty text for a single label."""
    if not name.isascii():
        import idna  # noqa: PLC0415 - slow to import, rarely needed

        # Keep an invalid domain unchanged.
        with suppress(idna.IDNAError):
            name = idna.encode(name, uts46=True).decode()
    host = name.rstrip(".")
    short = host.removeprefix("www.")
    labels = host.split(".")
    is_host = len(labels) > 1 and all(labels) and len(host) <= LONGEST_HOST
    return (short if "." in short else host) if is_host else ""


def _main_host(host: str) -> str:
    """Drop a host's mobile and country labels, but keep its registered domain."""
    label, _, parent = host.partition(".")
    while _MIRROR.fullmatch(label) and registered_domain(parent) is not None:
        host = parent
        label, _, parent = host.partition(".")
    return host


def _profile_name(parts: SplitResult) -> str:
    """Return a certain profile URL's name, or an empty text for any other URL.

    Further segments, such as a page of details, and any parameters belong to the same profile.
    """
    folder, *names = _segments(parts)
    if unquote(folder).lower() != _PROFILE_FOLDER or not names:
        return ""
    return _name_of(names[0])


def _name_of(segment: str) -> str:
    """Return the profile name in a segment of a URL, or an empty text without a name."""
    name = _decoded(segment)
    return name if _NAME.fullmatch(name) and any(map(str.isalnum, name)) else ""


def _is_placeholder(parts: SplitResult) -> bool:
    """Return whether a profile URL has no name, or a placeholder as its name."""
    folder, *names = _segments(parts)
    return unquote(folder).lower() == _PROFILE_FOLDER and (
        not names or _decoded(names[0]).strip(BLANKS) in ("", *PLACEHOLDER_NAMES)
    )


def _segments(parts: SplitResult) -> list[str]:
    return [part for part in parts.path.split("/") if part] or [""]


def _decoded(segment: str) -> str:
    name = "".join(filter(str.isprintable, visible(unquote(segment))))
    return unicodedata.normalize("NFC", name.strip()).lower()


def _encoded(text: str) -> str:
    """Percent-encode only the characters of a URL that require it."""
    encoded = quote(text, safe=_RESERVED, errors="surrogatepass")
    return _ENCODED.sub(lambda code: quote(unquote_to_bytes(code[0]), safe=""), encoded)
