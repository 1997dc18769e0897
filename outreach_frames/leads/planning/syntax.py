"""Check the syntax of field names, e-mail addresses and profile URLs, in texts and columns.

Libraries check addresses slowly. Texts that match the simple patterns here are always valid, and
only other texts are passed to the libraries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from outreach_frames import spec
from outreach_frames.common import terms
from outreach_frames.common.text import hidden_in, quoted
from outreach_frames.common.web_addresses import split_address
from outreach_frames.errors import InvalidInputError
from outreach_frames.identity.cells import Reading
from outreach_frames.identity.domains import LONGEST_HOST
from outreach_frames.identity.keys import (
    are_simple_emails,
    email_key,
    emails_in,
    profnet_url_key,
    profnet_urls_in,
)

SIMPLE_URL: Final = (
    r"(?:[Hh][Tt][Tt][Pp][Ss]?://)?(?:[A-Za-z0-9-]+\.)+[A-Za-z]+/[A-Za-z0-9_~./-]*[A-Za-z0-9_~-]/*"
)

# Latin letters that have no decomposition.
_LATIN_LETTERS: Final[dict[int, int | str]] = {
    **str.maketrans("øłđðħ\u0131", "olddhi"),
    **{ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th"},
}
_HOST: Final = re.compile(r"(?:[\w-]+\.)+[\w-]+(?::\d+)?")
_TEMPLATE_NAME: Final = r"[\p{L}_][\p{L}\p{N}_ .|-]*"
# {{…}} anywhere in a text, or a whole text such as [first name], %FIRST_NAME% or <first name>.
_TEMPLATE: Final = r"(?s)\{\{.*?\}\}" + "".join(
    rf"|\A\s*{start}{_TEMPLATE_NAME}{end}\s*\z"
    for start, end in (
        ("%+", "%+"),
        (r"\[+", r"\]+"),
        (r"\$?\{", r"\}"),
        ("<+", ">+"),
        (r"\*\|", r"\|\*"),
    )
)
_ADDRESS_LIKE: Final = re.compile(r"[^\s@<>,;]+@[^\s@<>,;]+")


def field_name(column: object) -> str:
    """Convert a column's name to a field name that the service accepts.

    Parameters
    ----------
    column : str or any other column label
        For example "First Name".

    Returns
    -------
    str
        Lowercase letters, digits and underscores, beginning with a letter; cut to the maximum
        length.

    Raises
    ------
    InvalidInputError
        The name has no Latin letter or digit.

    Notes
    -----
    Interface: Limits.

    Examples
    --------
    >>> field_name("First Name")
    'first_name'
    >>> field_name("Größe (m²)")
    'grosse_m2'
    >>> field_name("Fødselsår"), field_name("Stanowisko główne")
    ('fodselsar', 'stanowisko_glowne')
    >>> field_name("2nd choice")
    'field_2nd_choice'
    """
    letters = unicodedata.normalize("NFKD", str(column).casefold()).translate(_LATIN_LETTERS)
    ascii_letters = letters.encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "_", ascii_letters.lower()).strip("_")
    if not name:
        raise InvalidInputError(
            f"The column {quoted(column)} cannot be converted to a field name. Choose a name: "
            f"{terms.argument('data', {'a_name': column})}."
        )
    if not name[0].isalpha():
        name = f"field_{name}"
    return name[: spec.MAX_DATA_NAME_LENGTH].rstrip("_")


def is_field_name(name: object) -> bool:
    """Return whether the service accepts the name of a data field."""
    return (
        isinstance(name, str)
        and len(name) <= spec.MAX_DATA_NAME_LENGTH
        and re.fullmatch(spec.DATA_NAME_PATTERN, name) is not None
    )


def email_problem(text: str) -> str | None:
    """Return the error message for an email address, or None if it is valid.

    >>> email_problem("anna@x.example; ben@x.example").partition(": ")[2]
    'the cell has several addresses; keep one per row.'
    """
    from email_validator import (  # noqa: PLC0415 - slow to import, and reads need none
        EmailNotValidError,
        validate_email,
    )

    try:
        validate_email(text, check_deliverability=False)
        reason = ""
    except EmailNotValidError as error:
        reason = str(error).partition(":")[0].rstrip(".") + "."
        if len(_ADDRESS_LIKE.findall(text)) > 1:
            reason = "the cell has several addresses; keep one per row."
    if hidden_in(text):
        reason = "the cell contains a hidden character; remove it."
    return f"{quoted(text)} is not an e-mail address: {reason}" if reason else None


def url_problem(text: str) -> str | None:
    """Return the error message for a profile URL, or None if it is valid.

    >>> url_problem("profnet.example")
    "'profnet.example' is not a profile URL: the URL has no path after the host."
    """
    reason = _url_reason(text)
    return f"{quoted(text)} is not a profile URL: {reason}" if reason else None


def _url_reason(text: str) -> str | None:
    if len(text) > spec.MAX_DATA_VALUE_LENGTH:
        return f"the URL has more than {spec.MAX_DATA_VALUE_LENGTH} characters."
    is_hidden = not text.isprintable() or hidden_in(text)
    if is_hidden or any(map(str.isspace, text)):
        return "the cell contains a blank or hidden character; keep one URL per row."
    parts = split_address(text)
    if parts is None:
        return "the host is invalid."
    if parts.scheme not in {"", "http", "https"} or not _HOST.fullmatch(parts.netloc):
        return "write the URL as https://host.example/in/name."
    if not parts.path.strip("/"):
        return "the URL has no path after the host."
    # A later run recognises the person by this key.
    return None if profnet_url_key(text) else "the host is invalid."


def repair_email(text: str) -> str | None:
    """Return the only email in a text, or None if the text has none or several, or is ambiguous.

    >>> repair_email("Rui <rui@x.example>"), repair_email("ana maria@x.example")
    ('rui@x.example', None)
    """
    key = _only_key(emails_in(text))
    return key if key and email_key(key) == key and not email_problem(key) else None


def repair_url(text: str) -> str | None:
    """Return the only profile URL in a text, or None if it has none or several, or is ambiguous.

    >>> repair_url("Ann <www.profnet.example/in/ann>"), repair_url("x.example/in/an na")
    ('https://profnet.example/in/ann', None)
    """
    key = _only_key(profnet_urls_in(text))
    url = f"https://{key.removeprefix('https://')}"
    return url if key and profnet_url_key(url) == key and not url_problem(url) else None


def _only_key(reading: Reading) -> str:
    """Return the only key in a text, or "" if the text is ambiguous."""
    keys, is_ambiguous = reading
    return keys[0] if len(keys) == 1 and not is_ambiguous else ""


def are_templates(texts: pa.Array, names: Collection[str]) -> pa.Array:
    """Return whether each text has an unfilled template, or is one of its column's names.

    >>> texts = ["Hi {{name}}", "[first name]", "First Name", "[Senior] Engineer", None]
    >>> are_templates(pa.array(texts, pa.large_string()), ["first_name"]).to_pylist()
    [True, True, True, False, False]
    """
    bare = pc.replace_substring_regex(pc.utf8_lower(texts), r"[\s_-]+", "")
    own = {re.sub(r"[\s_-]+", "", name.lower()) for name in names}
    is_name = pc.is_in(bare, pa.array(sorted(own), texts.type))
    # Compiling the whole pattern takes several milliseconds.
    if not pc.any(pc.match_substring_regex(texts, r"[{%\[<*]")).as_py():
        return is_name
    return pc.or_(pc.match_substring_regex(texts, _TEMPLATE).fill_null(False), is_name)


def is_simple_email(texts: pa.Array) -> pa.Array:
    """Return whether each text is certainly an email address; missing stays missing."""
    return pc.and_not(
        are_simple_emails(texts), pc.match_substring_regex(texts, _not_simple_domain())
    )


@cache
def _not_simple_domain() -> str:
    """Return a pattern of the domains for which the library has special rules."""
    from email_validator import (  # noqa: PLC0415 - slow to import, and reads need none
        SPECIAL_USE_DOMAIN_NAMES,
    )

    return rf"(?i)[@.](?:{'|'.join(map(re.escape, SPECIAL_USE_DOMAIN_NAMES))})\z"


def is_simple_url(texts: pa.Array) -> pa.Array:
    """Return whether each text is certainly a profile URL; missing stays missing."""
    return pc.and_(
        pc.match_substring_regex(texts, rf"\A(?:{SIMPLE_URL})\z"),
        pc.less_equal(pc.binary_length(texts), LONGEST_HOST),
    )
