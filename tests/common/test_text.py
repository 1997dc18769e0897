"""Text for people: shortened, counted, and safe for a terminal."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.common.text import (
    printable,
    quoted,
)

ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
def test_printable_text_has_no_control_characters(text: str) -> None:
    """No control character, line separator or change of text direction remains."""
    left = {unicodedata.category(character) for character in printable(text)}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(printable(text)) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    "name", ["Łucja Ångström", "Jean\u00a0Dupont", "نیم\u200cرخ", "👩\u200d💻", "李 雷", "क्\u200dष"]
)
def test_names_in_all_languages_stay_unchanged(name: str) -> None:
    """Characters that are part of names in some language are not control characters."""
    assert printable(name) == name


def test_control_characters_are_escaped() -> None:
    """Control characters are shown as in a Python string; line breaks are kept on request."""
    assert printable("a\x1b[31mb\nc\x9b\u202ed") == r"a\x1b[31mb\nc\x9b\u202ed"
    assert printable("a\x1bb\nc", keep="\n") == "a\\x1bb\nc"


def test_values_are_quoted_at_any_depth() -> None:
    """A value whose repr fails is shown as its type."""
    assert quoted("it's") == '"it\'s"'
    assert quoted("a" * 100, 10) == "'aaaaaaaa…"
    deep: list[object] = []
    for _ in range(2 * sys.getrecursionlimit()):
        deep = [deep]
    # Newer versions of Python can represent deeper lists than older ones.
    assert len(quoted(deep)) <= 60
