"""Messages for the shell: options in place of Python's arguments."""

from __future__ import annotations

import re
from typing import Final

from outreach_frames import spec

_OPTIONS: Final = (
    *spec.FILTERS_BY_NAME,
    *("name", "status", "created_by_user_id", "created_by_user_email", "email_provider"),
    *("user_email", "limit", "page_size", "email", "profnet_url", "overrides", "data"),
    *("leads_distribution", "mailboxes", "chunk_size", "journal", "refresh"),
    *("per_company", "split_by", "domain", "company_id", "company_profnet_url"),
)
# The first that fits a place in a text stands for it.
_WORDS: Final = (
    (r"\blimit=None\b", "--all"),
    (r"\bresume=False\b", "--no-resume"),
    (r"the exception's \.partial holds them", "--out FILE keeps them"),
    (r"\b(?:of\.)?(sequences|mailboxes)\(\)", r"outreach-frames \1"),
    (r"\bsnapshot_people\(\)", "outreach-frames snapshot"),
    (r"\boverrides=\{'(\w+)': True\}", r"--overrides \1"),
    (r"\bEach row with its outcome: report\.frame; as files: report\.to_csv\(folder\);[^.]*\.notes",
        "--results FOLDER writes each row with its outcome to a file"),
    (r"The people: \.people; each account with its status: \.accounts;.*\.to_excel\(path\)",
        "As files: --out FILE for the people, --accounts FILE for the companies"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=True\b", r"--\1"),
    (rf"(?<![\w.?&/])({'|'.join(_OPTIONS)})=(?=['\"\d-])", r"--\1 "),
    (rf"^({'|'.join(spec.FILTERS_BY_NAME)})(?= (?:takes|is)\b)", r"--\1"),
)  # fmt: skip


def in_shell(text: str) -> str:
    """Return a message with the shell's options in place of Python's arguments.

    >>> in_shell("20 of 400 people were read; limit=None reads them all.")
    '20 of 400 people were read; --all reads them all.'
    >>> in_shell("status='activ' is none of active, draft.")
    "--status 'activ' is none of active, draft."
    """
    for pattern, words in _WORDS:
        text = re.sub(
            pattern,
            lambda found, words=words: _with_dashes(found.expand(words)),  # type: ignore[misc]
            text,
        )
    return text


def _with_dashes(words: str) -> str:
    """Write an option's name with dashes, and its value as it is.

    >>> _with_dashes("--person_titles x_y")
    '--person-titles x_y'
    """
    name, blank, rest = words.partition(" ")
    return (name.replace("_", "-") if name.startswith("--") else name) + blank + rest
