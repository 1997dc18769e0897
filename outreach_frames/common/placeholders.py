"""Texts that people and programs write into cells without a value."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

# Cells of identifiers, in lower case.
_WORDS: Final = (
    "unknown|n/a|#n/a|n.a.|na|<na>|none|null|nil|nan|-|--|---|—|.|..|...|?|??|???|#|x|xx|xxx|tbd|tba|"
    "http://|https://|no email|no e-mail|no mail|no url|no profile|not available|not known|"
    "not provided|missing|empty|undefined|email_not_unlocked@domain.com|noemail@domain.com"
)
PLACEHOLDERS: Final = frozenset(_WORDS.split("|"))
PLACEHOLDER_EMAILS: Final = tuple(word for word in PLACEHOLDERS if "@" in word)
# Names in profile URLs `/in/<name>` that address the visitor, such as `me`, or that programs write
# for missing values.
PLACEHOLDER_NAMES: Final = ("me", "nan", "none", "null", "undefined", "unknown", "<na>")
# Errors of spreadsheets in English, German, French and Spanish, in upper case.
_ERRORS: Final = (
    "#N/A|#REF!|#NAME?|#VALUE!|#DIV/0!|#NULL!|#NUM!|#ERROR!|#SPILL!|#CALC!|#FIELD!|#BLOCKED!|"
    "#CONNECT!|#UNKNOWN!|#BUSY!|#GETTING_DATA|LOADING...|LOADING…|#NV|#BEZUG!|#WERT!|#ZAHL!|"
    "#VALEUR!|#NOM?|#NOMBRE!|#N/D|#¡REF!|#¡VALOR!|#¿NOMBRE?|#¡NUM!|#¡DIV/0!|#¡NULO!"
)
# Missing cells of programs, exactly so written: Nan, Null and NA are names and a region.
_MISSING: Final = ("nan", "NaN", "<NA>", "None", "NaT", "null", "NULL")
# Placeholders of people in data fields, in lower case.
_DATA_PLACEHOLDERS: Final = (
    "n/a|tbd|tba|unknown|undefined|missing|not available|(blank)|[blank]|?|-|--|.|..|x|xxx"
)
# Texts that leave a cell of names or identifiers empty, in lower case.
_EMPTY: Final = PLACEHOLDERS | {*_DATA_PLACEHOLDERS.split("|"), ""}


def are_missing_texts(texts: pa.Array) -> pa.Array:
    """Return whether each text of a data field is an error of a spreadsheet or a missing cell.

    >>> are_missing_texts(pa.array(["#n/a", "NaN", "Nan", None])).to_pylist()
    [True, True, False, False]
    """
    errors = pc.is_in(pc.utf8_upper(texts), pa.array(_ERRORS.split("|"), texts.type))
    return pc.or_(errors, pc.is_in(texts, pa.array(_MISSING, texts.type)))


def are_placeholder_texts(texts: pa.Array) -> pa.Array:
    """Return whether each text of a data field is a placeholder that somebody wrote."""
    placeholders = pa.array(_DATA_PLACEHOLDERS.split("|"), texts.type)
    return pc.is_in(pc.utf8_lower(texts), placeholders)


def are_filled(texts: pa.Array) -> pa.Array:
    """Return whether each text of names or identifiers is neither missing nor a placeholder.

    >>> are_filled(pa.array(["Acme", "#REF!", "NaT", "[blank]", "", None])).to_pylist()
    [True, False, False, False, False, False]
    """
    empty = pc.is_in(pc.utf8_lower(texts), pa.array([*sorted(_EMPTY), None], texts.type))
    return pc.invert(pc.or_(empty, are_missing_texts(texts)))


def are_companies(texts: pa.Array) -> pa.Array:
    """Return whether each text is filled, as `are_filled`, or X, which companies are called."""
    return pc.or_(are_filled(texts), pc.equal(pc.utf8_lower(texts), "x").fill_null(False))
