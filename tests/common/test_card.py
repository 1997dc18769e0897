"""Cards: the views of a result in a terminal and in a notebook."""

from __future__ import annotations

import html

from outreach_frames.common.card import Card, Details, Fact, as_html, as_text

BAD = "<b>Ada</b>\x1b[2J\u202e"
SEEN = "<b>Ada</b>\\x1b[2J\\u202e"


def card(text: str) -> Card:
    """Return a card with the same text in every part."""
    return Card(
        headline=text,
        facts=[Fact(text, text, 1234, [text], text)],
        columns=[text],
        alert=text,
        details=[Details(text, [text]), Details(text, [text, "}"], is_code=True)],
        advice=text,
    )


def test_every_part_is_escaped() -> None:
    """All texts are shown and escaped, in a notebook and in a terminal."""
    text, page = as_text(card(BAD)), as_html(card(BAD))
    assert not {"\x1b", "\u202e"} & set(text + page)
    # Pages may be light or dark.
    assert "color:" not in page.replace("color:inherit", "")
    assert text.count(SEEN) == 11
    assert page.count(html.escape(SEEN)) == 12
    assert "<b>Ada" not in page
    assert "1,234" in text
    assert "1,234" in page


def test_a_text_of_several_lines_is_one_line() -> None:
    """A line break in a service's text does not start a new line of the card."""
    made = Card("One.", [Fact("status", "fine\n  added  500")])
    assert as_text(made).splitlines() == ["One.", "  status  fine\\n  added  500"]
    assert "fine\\n" in as_html(made)


def test_code_keeps_its_lines() -> None:
    """Code keeps its line breaks in both views."""
    made = Card("One.", [], details=[Details("Lead", ["{", '  "a": 1', "}"], is_code=True)])
    assert as_text(made).splitlines()[1:] == ["  Lead:", "    {", '      "a": 1', "    }"]
    assert f"<pre>{html.escape('{')}\n  &quot;a&quot;: 1\n}}</pre>" in as_html(made)
