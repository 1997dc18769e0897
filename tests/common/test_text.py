"""Text for people: shortened, counted, and safe for a terminal."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames.common.text import (
    has_lone_surrogate,
    printable,
    quoted,
    shorten,
    unique_name,
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


@given(ANY_TEXT, st.integers(1, 40))
def test_shortened_text_is_the_text_or_its_beginning(text: str, most: int) -> None:
    """Text is never longer than the limit; longer text ends in an ellipsis."""
    short = shorten(text, most)
    whole = printable(text)
    assert len(short) <= most
    assert short == whole if len(whole) <= most else short == f"{whole[: most - 1]}…"


def test_values_are_quoted_at_any_depth() -> None:
    """A value whose repr fails is shown as its type."""
    assert quoted("it's") == '"it\'s"'
    assert quoted("a" * 100, 10) == "'aaaaaaaa…"
    deep: list[object] = []
    for _ in range(2 * sys.getrecursionlimit()):
        deep = [deep]
    # Newer versions of Python can represent deeper lists than older ones.
    assert len(quoted(deep)) <= 60


@given(st.lists(st.sampled_from(["a", "b", "a_2", "a_3"]), max_size=12))
def test_unique_names_are_unique(names: list[str]) -> None:
    """Repeated names become unique, and the first one stays unchanged."""
    unique: list[str] = []
    for name in names:
        unique.append(unique_name(name, unique))
    assert len(set(unique)) == len(names)
    assert unique[:1] == names[:1]


def test_a_lone_surrogate_is_found() -> None:
    """A lone surrogate cannot be sent or saved; a surrogate pair is a valid character."""
    assert has_lone_surrogate("Ada \ud83d")
    assert not has_lone_surrogate("Ada \U0001f600")
