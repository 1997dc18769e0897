"""Placeholders: texts that people and programs write into cells without a value."""

from __future__ import annotations

from typing import Final

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
# Cells of data fields, exactly so written. Nan, Null and NA are also names and a country code.
MISSING_VALUE_TEXTS: Final = ("nan", "NaN", "<NA>", "None", "NaT", "null", "NULL")
