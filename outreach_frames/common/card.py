"""Cards: summaries of results for terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from outreach_frames.common.text import printable

_CELL: Final = "text-align:left;vertical-align:top;padding:3px 12px 3px 0"
# Numbers must not break across lines, however narrow the page is.
_WHOLE_WORDS: Final = "overflow-wrap:normal"
# Inherited colours fit light and dark pages.
_TABLE: Final = "display:block;color:inherit;font-size:inherit"
# On a narrow page the text wraps below its name.
_ROW: Final = "display:flex;flex-wrap:wrap;background:none"
_NUMBER: Final = f"{_CELL};{_WHOLE_WORDS};flex:0 0 4em;text-align:right"
_TEXT: Final = f"{_CELL};flex:1 1 24em"


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of a card: a name, an optional count and a text."""

    name: str
    text: str
    number: int | None = None
    details: Sequence[str] = ()
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """Lines below the facts: a list, or code that can be collapsed."""

    title: str
    lines: Sequence[str]
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """The summary of a result; details without lines are not shown."""

    headline: str
    facts: Sequence[Fact]  # all facts have a number, or none has
    columns: Sequence[str] = ()  # the titles of name, number and text
    alert: str = ""
    details: Sequence[Details] = ()
    advice: str = ""


def as_text(card: Card) -> str:
    r"""Return a card as lines for a terminal, with control characters visible.

    >>> print(as_text(Card("Two rows.", [Fact("added", "There.", 1), Fact("invalid", "No.", 1)])))
    Two rows.
      added          1  There.
      invalid        1  No.
    """
    return "\n".join(printable(line) for line in _lines(card))


def _lines(card: Card) -> Iterator[str]:
    yield card.headline
    width = max((len(fact.name) for fact in card.facts), default=0)
    for fact in card.facts:
        number = "" if fact.number is None else f"{fact.number:>7,}  "
        yield f"  {fact.name:<{width}}  {number}{fact.text}"
        for line in [*fact.details, fact.advice]:
            if line:
                yield f"{'':{width + 4 + len(number)}}{line}"
    if card.alert:
        yield card.alert
    for part in card.details:
        if part.lines:
            yield f"  {part.title}:"
            yield from (f"    {line}" for line in part.lines)
    if card.advice:
        yield card.advice


def as_html(card: Card) -> str:
    """Return a card as HTML for a notebook, with all texts escaped.

    >>> as_html(Card("No <b>rows</b>.", []))
    '<div style="overflow-wrap:anywhere"><p><b>No &lt;b&gt;rows&lt;/b&gt;.</b></p></div>'
    """
    return f'<div style="overflow-wrap:anywhere">{"".join(_elements(card))}</div>'


def _elements(card: Card) -> Iterator[str]:
    yield f"<p><b>{_html(card.headline)}</b></p>"
    if card.alert:
        yield f"<p><b>{_html(card.alert)}</b></p>"
    if card.facts:
        width = max(len(text) for text in [*card.columns[:1], *(fact.name for fact in card.facts)])
        name = f"{_CELL};{_WHOLE_WORDS};flex:0 0 {width}ch"
        titles = "".join(
            f'<th style="{style}">{_html(title)}</th>'
            for title, style in zip(card.columns, (name, _NUMBER, _TEXT), strict=False)
        )
        head = f'<tr style="{_ROW}">{titles}</tr>' if titles else ""
        rows = "".join(_row(fact, name) for fact in card.facts)
        yield f'<table style="{_TABLE}"><tbody style="display:block">{head}{rows}</tbody></table>'
    for part in card.details:
        if part.is_code and part.lines:
            code = _html("\n".join(part.lines), keep="\n")
            title = f"<summary>{_html(part.title)}</summary>"
            yield f"<details open>{title}<pre>{code}</pre></details>"
        elif part.lines:
            items = "".join(f"<li>{_html(line)}</li>" for line in part.lines)
            yield f"<p>{_html(part.title)}:</p><ul>{items}</ul>"
    if card.advice:
        yield f"<p><small>{_html(card.advice)}</small></p>"


def _row(fact: Fact, name_style: str) -> str:
    cells = [f'<th scope="row" style="{name_style}">{_html(fact.name)}</th>']
    if fact.number is not None:
        cells.append(f'<td style="{_NUMBER}">{fact.number:,}</td>')
    details = "".join(f'<br><span style="opacity:.8">{_html(text)}</span>' for text in fact.details)
    advice = f"<br><i>{_html(fact.advice)}</i>" if fact.advice else ""
    cells.append(f'<td style="{_TEXT}">{_html(fact.text)}{details}{advice}</td>')
    return f'<tr style="{_ROW}">{"".join(cells)}</tr>'


def _html(text: str, keep: str = "") -> str:
    return escape(printable(text, keep=keep))
