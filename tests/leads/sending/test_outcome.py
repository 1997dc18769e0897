"""The outcomes of leads after a success response: consistent, inconsistent or invalid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outreach_frames import spec
from outreach_frames.common.text import excerpt
from outreach_frames.identity.keys import email_key, profnet_url_key
from outreach_frames.leads import statuses
from outreach_frames.leads.sending.outcome import (
    ChunkOutcome,
    read_response,
    reclassify_resent,
)
from tests.examples import share_of_examples

Lead = tuple[str | None, str | None]

ADA, BO, CY = "ada@example.com", "bo@example.com", "cy@example.com"
ADA_URL, BO_URL = "https://profnet.example/in/ada", "https://profnet.example/in/bo"
THREE: list[Lead] = [(ADA, ADA_URL), (BO, BO_URL), (CY, None)]

SKIP_LISTS = [f"{status}{spec.SKIPPED_SUFFIX}" for status in statuses.SKIPPED]
NEW_LISTS = ["blocked_domain_and_skipped", "on_leave_and_skipped"]
DUPLICATE_LISTS = ["duplicate_emails", "duplicate_profnet_urls", "duplicate_network_urls"]


def outcome(response: object, leads: list[Lead] = THREE) -> ChunkOutcome:
    """Read a response into outcomes, and check that each lead has one."""
    read = read_response(leads, response)
    assert len(read.rows) == len(leads)
    assert all(row.status and isinstance(row.status, str) for row in read.rows)
    return read


def found(response: object, leads: list[Lead] = THREE) -> list[str]:
    """Return each lead's status."""
    return [row.status for row in outcome(response, leads).rows]


def success(added: object, total: object = 3, **fields: object) -> dict[str, Any]:
    """Make a response for three leads."""
    return {"total": total, "total_added_to_sequence": added, **fields}


def recently(*entries: object, added: int = 2) -> dict[str, Any]:
    """Make a response that lists entries as recently contacted."""
    return success(added, recently_contacted_and_skipped=list(entries))


def excluded(*entries: object, **fields: object) -> dict[str, Any]:
    """Make a response that lists entries as in the exclusion list, and two added leads."""
    return success(2, in_exclusion_list_and_skipped=list(entries), **fields)


ADDED, UNKNOWN = ["added"] * 3, ["unknown"] * 3
SECOND = ["added", "recently_contacted", "added"]
TORN = {"email": ADA, "profnet_url": BO_URL}
STRAY = {"email": "never@example.org", "profnet_url": None}
OTHER_URL = {"email": BO, "profnet_url": "https://profnet.example/in/x", "reason": "asked us to"}
LEAVE = "leads, but its lists of skipped leads leave"
NO_MATCH = "match no sent lead, or several: "

# Responses, the leads' statuses, and texts in their details and notes; without texts, both are
# empty.
RESPONSES: list[tuple[object, list[str], list[str]]] = [
    (success(3, **{field.name: [] for field in spec.ADD_LEADS_RESULT[2:]}), ADDED, []),
    # An entry matches by either identifier, in any spelling.
    (recently({"email": "BO@Example.COM", "profnet_url": None}), SECOND, []),
    (recently({"profnet_url": "http://WWW.profnet.example/in/bo/"}), SECOND, []),
    (recently({"email": "", "profnet_url": BO_URL}), SECOND, []),
    (recently({"email": "elsewhere@x.example", "profnet_url": BO_URL}), SECOND, ["elsewhere@x"]),
    (recently(BO), SECOND, []),
    (recently(BO_URL), SECOND, []),
    (recently(OTHER_URL), SECOND, [json.dumps(OTHER_URL)]),
    (
        success(2, gone_and_skipped=[{"email": ADA, "why": "left"}]),
        ["gone", "added", "added"],
        ["gone_and_skipped", "left"],
    ),
    # Counts that are inconsistent or invalid.
    *(
        (success(count), UNKNOWN, [f"reports {shown} added {LEAVE} 3"])
        for count, shown in [
            *((count, count) for count in (1, 0, 4, -3, 3.0)),
            ("3", '"3"'),
            (True, "true"),
            (None, "null"),
        ]
    ),
    *(
        (success(3, total=total), UNKNOWN, [f"reports {shown} received leads, but 3 were sent"])
        for total, shown in [(4, 4), (2, 2), (None, "null"), ("3", '"3"'), (3.0, 3.0)]
    ),
    ({"total_added_to_sequence": 3}, UNKNOWN, ["reports null received leads"]),
    (
        success(1, already_in_sequence_and_skipped=[{"email": ADA}]),
        ["already_in_sequence", "unknown", "unknown"],
        [f"1 added {LEAVE} 2"],
    ),
    # An entry that matches no lead may be any lead.
    *(
        (success(added, in_exclusion_list_and_skipped=[STRAY]), UNKNOWN, [json.dumps(STRAY)])
        for added in (0, 1, 2)
    ),
    *(
        (
            success(3, **{name: ["never@example.org"]}),
            UNKNOWN,
            [f"{name} has entries that {NO_MATCH}never@example.org", "Other entries match no sent"],
        )
        for name in (SKIP_LISTS[0], NEW_LISTS[0], DUPLICATE_LISTS[0])
    ),
    *(
        (excluded(entry), UNKNOWN, [f"{NO_MATCH}{shown}"])
        for entry, shown in [
            *((entry, json.dumps(entry)) for entry in (7, None, [], {}, [ADA], {"email": 3})),
            ({"email": [ADA]}, json.dumps({"email": [ADA]})),
            ("", ""),
            (ADA + "x", ADA + "x"),
            (TORN, json.dumps(TORN)),
        ]
    ),
    (success(3, duplicate_emails=[TORN]), UNKNOWN, [f"{NO_MATCH}{json.dumps(TORN)}"]),
    *(
        (
            recently(ADA) | {"recently_contacted_and_skipped": value},
            UNKNOWN,
            ["recently_contacted_"],
        )
        for value in ("all of them", 3, {"email": ADA}, True)
    ),
    # Lists, documented or not, and counts that contradict them.
    *(
        (
            success(2, **{name: [{"email": ADA, "profnet_url": ADA_URL}]}),
            [name.removesuffix("_and_skipped"), "added", "added"],
            [name] * (name in NEW_LISTS),
        )
        for name in (*SKIP_LISTS, *NEW_LISTS)
    ),
    *((success(3, **{name: [ADA]}), UNKNOWN, [ADA]) for name in (*SKIP_LISTS, *NEW_LISTS)),
    *(
        (success(added, total, **{name: [ADA]}), UNKNOWN, [f"also lists {ADA}"])
        for name in (*SKIP_LISTS, *NEW_LISTS, *DUPLICATE_LISTS)
        for added, total in [(2, 4), (2, 2), (2, None), (5, 3)]
    ),
    # Duplicates.
    *(
        (success(3, **{name: [ADA, ADA_URL]}), ADDED, [f"also lists {ADA}"])
        for name in DUPLICATE_LISTS
    ),
    *(
        (success(0, **{name: [text]}), ["duplicate_in_request", "unknown", "unknown"], [LEAVE])
        for name, text in zip(DUPLICATE_LISTS, [ADA.upper(), f"{ADA_URL}/", ADA_URL], strict=True)
    ),
    (success(1, duplicate_emails=[ADA]), UNKNOWN, [LEAVE]),
    (success(2, duplicate_emails=[ADA]), UNKNOWN, [LEAVE]),
    (
        success(1, duplicate_emails=[ADA], in_exclusion_list_and_skipped=[{"email": CY}]),
        ["unknown", "unknown", "in_exclusion_list"],
        [f"1 added {LEAVE} 2", f"also lists {ADA} as duplicate_in_request"],
    ),
    # A lead that is listed twice.
    (excluded({"email": ADA}, duplicate_emails=[ADA]), ["duplicate_in_request", *ADDED[1:]], [ADA]),
    (
        excluded({"email": ADA, "why": "left"}, {"profnet_url": ADA_URL, "why": "asked"}),
        ["in_exclusion_list", "added", "added"],
        ["left", "asked"],
    ),
    # Undocumented fields; empty ones are not noted.
    *(
        (success(3, remark=value), ADDED, [f"The service also returned remark: {shown}"])
        for value, shown in [
            ("half of it", "half of it"),
            *((value, json.dumps(value)) for value in (7, {"why": "slow"}, ["a"], True)),
        ]
    ),
    *(
        (success(3, **{name: value}), ADDED, [])
        for name in ("remark", "recently_contacted_and_skipped", "duplicate_emails")
        for value in (None, [], {}, "", 0, 0.0, False)
    ),
    # Responses that are not a result.
    *(
        (response, UNKNOWN, ["is not a valid result", shown])
        for response, shown in [
            ("queued", "queued"),
            *(
                (response, json.dumps(response))
                for response in (None, [], 7, True, {}, {"status": "processing"}, {"total": 3})
            ),
            ([success(3)], json.dumps([success(3)])),
        ]
    ),
]


@pytest.mark.parametrize(("response", "expected", "words"), RESPONSES)
def test_a_response(response: object, expected: list[str], words: list[str]) -> None:
    """Each lead has the proven outcome, else `unknown`; the rest of a response is noted."""
    read = outcome(response)
    assert [row.status for row in read.rows] == expected
    said = "\n".join([*read.notes, *(row.detail for row in read.rows)]).strip()
    assert all(text in said for text in words)
    assert bool(said) == bool(words)


def test_no_leads() -> None:
    """Without leads there are no outcomes, and a count of `true` is not 1."""
    assert outcome(success(0, total=0), []) == ChunkOutcome((), ())
    assert found(success(True, total=1), [(ADA, None)]) == ["unknown"]
    assert found(success(1, total=True), [(ADA, None)]) == ["unknown"]


# Names of lists that resemble a known status.
SIMILAR = [
    *("added ", " added", "Added", "ADDED", "added_", "_added", "add_ed", "added\u200b"),
    *("\xa0added", "\uff41\uff44\uff44\uff45\uff44", "added\n", "pre sent", "Not_Sent", "notsent"),
    *("\u0430dded", "recently_contacted ", *(set(statuses.STATUSES) - set(statuses.SKIPPED))),
]


def test_a_list_named_similar_to_a_status() -> None:
    """A list whose name resembles a known status keeps its full, printable name as status."""
    for word in SIMILAR:
        name = f"{word}_and_skipped"
        (status, *_) = found(success(2, **{name: [{"email": ADA}]}))
        assert status.endswith("_and_skipped")
        assert status.isprintable()
        assert status == name or word not in statuses.STATUSES
    (status, *_) = found(success(2, **{"a\x1b[31m_and_skipped": [{"email": ADA}]}))
    assert status == r"a\x1b[31m_and_skipped"


def test_a_long_or_deep_response() -> None:
    """A note has some 200 characters of the response, even of one too deep to print."""
    (note,) = outcome({"page": "x" * 10_000}).notes
    assert "x" * 180 in note
    assert len(note) < 260
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert found(deep) == UNKNOWN
    read = outcome(success(3, tree=deep))
    assert [row.status for row in read.rows] == ADDED
    assert "tree" in read.notes[0]
    while deep:
        deep = deep.pop()


WEAK = "https://profnet.example/profile/view?id=1"


@pytest.mark.parametrize(
    ("entry", "statuses_"),
    [
        ({"email": ADA, "profnet_url": WEAK}, ["recently_contacted", "added", "added"]),
        ({"profnet_url": WEAK}, ["unknown"] * 3),
        (WEAK, ["unknown"] * 3),
        ({"email": CY, "profnet_url": WEAK}, ["added", "added", "recently_contacted"]),
        ({"email": "zed@example.org", "profnet_url": WEAK}, ["unknown"] * 3),
    ],
)
def test_a_weak_url(entry: object, statuses_: list[str]) -> None:
    """An entry's weak URL, which leads may share, matches no lead; its address does."""
    leads: list[Lead] = [(ADA, WEAK), (BO, WEAK), (CY, None)]
    assert found(success(2, recently_contacted_and_skipped=[entry]), leads) == statuses_


@pytest.mark.parametrize(
    ("entry", "statuses_"),
    [
        ({"email": ADA, "profnet_url": ADA_URL}, ["present", "added", "added"]),
        ({"email": ADA.upper(), "profnet_url": "elsewhere"}, ["present", "added", "added"]),
        ({"email": "old@example.org", "profnet_url": ADA_URL}, ["present", "added", "added"]),
        ({"profnet_url": f"{ADA_URL}/"}, ["present", "added", "added"]),
        (ADA, ["present", "added", "added"]),
        (ADA_URL, ["present", "added", "added"]),
        ({"email": BO, "profnet_url": WEAK}, ["added", "present", "added"]),
        ({"profnet_url": f"{WEAK}0"}, ["added", "unknown", "added"]),
        ({"email": None, "profnet_url": WEAK}, ["added", "added", "unknown"]),
        (WEAK, ["added", "added", "unknown"]),
    ],
)
def test_a_resent_lead_that_is_already_in_the_sequence(entry: object, statuses_: list[str]) -> None:
    """A resent lead is `present` only if its entry has its email or certain profile URL."""
    leads: list[Lead] = [(ADA, ADA_URL), (BO, f"{WEAK}0"), (None, WEAK)]
    read = outcome(success(2, already_in_sequence_and_skipped=[entry]), leads)
    rows = [
        reclassify_resent(row, is_certain=place in read.certain)
        for place, row in enumerate(read.rows)
    ]
    assert [row.status for row in rows] == statuses_
    for row in rows:
        is_unknown = row.status == "unknown"
        assert ("a URL that does not certainly identify the person" in row.detail) is is_unknown
        assert ("The row was sent before" in row.detail) is is_unknown


def test_a_resent_lead_that_is_listed_twice() -> None:
    """Of a resent lead's two entries, one with its email is enough."""
    entries = [{"profnet_url": WEAK}, {"email": ADA}, {"profnet_url": WEAK}]
    listed = success(0, 1, already_in_sequence_and_skipped=entries)
    assert outcome(listed, [(ADA, WEAK)]).certain == {0}


def test_a_lead_in_two_lists() -> None:
    """A lead in several lists has the status of the first documented list; the others are noted."""
    response = success(
        2,
        in_other_active_sequences_and_skipped=[{"email": ADA}],
        aaa_and_skipped=[{"email": ADA}],
        recently_contacted_and_skipped=[{"email": ADA.upper()}],
    )
    assert found(response) == ["recently_contacted", "added", "added"]
    (note,) = outcome(response).notes
    assert note.index(ADA) < note.index("in_other_active_sequences") < note.index("aaa")


def _lead(number: int, kind: str) -> Lead:
    email = f"Person{number}@Example.com" if "e" in kind else None
    return email, f"https://profnet.example/in/p{number}" if "u" in kind else None


LEADS = st.lists(st.sampled_from(["e", "u", "eu"]), max_size=6).map(
    lambda kinds: [_lead(number, kind) for number, kind in enumerate(kinds)]
)
ECHOES: list[Callable[[str], str]] = [
    lambda text: text,
    str.lower,
    str.upper,
    lambda text: f" {text} ",
]
URL_ECHOES: list[Callable[[str], str]] = [
    *ECHOES,
    lambda url: f"{url}/",
    lambda url: url.replace("https://", "http://www."),
]


@st.composite
def echoes(draw: st.DrawFn, lead: Lead) -> dict[str, str | None]:
    """Draw a form in which a service may return a lead."""
    email, url = lead
    email = email and draw(st.sampled_from(ECHOES))(email)
    url = url and draw(st.sampled_from(URL_ECHOES))(url)
    if email and url:
        email, url = draw(st.sampled_from([(email, url), (email, None), (None, url)]))
    entry = {"email": email, "profnet_url": url}
    return {name: text for name, text in entry.items() if text or draw(st.booleans())}


@st.composite
def consistent(draw: st.DrawFn) -> tuple[list[Lead], dict[str, Any], list[str]]:
    """Draw a request, a correct response and the leads' statuses."""
    leads = draw(LEADS)
    response: dict[str, Any] = {name: [] for name in SKIP_LISTS if draw(st.booleans())}
    truth = []
    for lead in leads:
        name = draw(st.sampled_from(["", "", *SKIP_LISTS, *NEW_LISTS]))
        truth.append(name.removesuffix("_and_skipped") or "added")
        if name:
            response.setdefault(name, []).append(draw(echoes(lead)))
    response |= {"total": len(leads), "total_added_to_sequence": truth.count("added")}
    names = draw(st.permutations(list(response)))
    return leads, {name: response[name] for name in names}, truth


WORDS = st.text("abé<&\n =", min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-2, 9) | st.floats(0, 9) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)
NAMES = st.sampled_from(
    [
        *(field.name for field in spec.ADD_LEADS_RESULT),
        *NEW_LISTS,
        *DUPLICATE_LISTS,
        *(f"{status}_and_skipped" for status in statuses.STATUSES),
        "_and_skipped",
        "remark",
    ]
)


@st.composite
def any_response(draw: st.DrawFn) -> tuple[list[Lead], object]:
    """Draw a request and a response with any errors."""
    leads, response, _ = draw(consistent())
    if draw(st.integers(0, 9)) == 0:
        return leads, draw(VALUES)
    texts = [text for lead in leads for text in lead if text] + ["never@example.org"]
    text = st.sampled_from(texts)
    entries = text | VALUES | st.fixed_dictionaries({"email": text, "profnet_url": text})
    for _ in range(draw(st.integers(0, 4))):
        name = draw(NAMES)
        match draw(st.sampled_from(["drop", "value", "count", "entries", "add"])):
            case "drop":
                response.pop(name, None)
            case "value":
                response[name] = draw(VALUES)
            case "count":
                count = draw(st.sampled_from(["total", "total_added_to_sequence"]))
                response[count] = draw(st.integers(-1, len(leads) + 1))
            case "entries":
                response[name] = draw(st.lists(entries, max_size=3))
            case "add" if isinstance(response.get(name), list):
                response[name] = [*response[name], draw(entries)]
    return leads, response


@share_of_examples(2)
@given(consistent())
def test_correct_responses_give_correct_statuses(
    case: tuple[list[Lead], dict[str, Any], list[str]],
) -> None:
    """Statuses read from a correct response are correct, in any spelling of its leads."""
    leads, response, truth = case
    assert found(response, leads) == truth
    assert outcome(response, leads).notes == ()


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return excerpt(text.encode())


def _names(entry: object, lead: Lead) -> bool:
    fields = entry if isinstance(entry, dict) else {"email": entry, "profnet_url": entry}
    keys = (email_key, profnet_url_key)
    return any(
        isinstance(said, str) and sent is not None and key(said) == key(sent)
        for said, sent, key in zip(
            (fields.get("email"), fields.get("profnet_url")), lead, keys, strict=True
        )
    )


@share_of_examples(2)
@given(any_response())
def test_no_part_of_a_response_is_lost(case: tuple[list[Lead], object]) -> None:
    """Every entry and other field becomes a status or a note; no more are `added` than counted."""
    leads, response = case
    read = outcome(response, leads)
    added = [row.status for row in read.rows].count("added")
    count = response.get("total_added_to_sequence") if isinstance(response, dict) else None
    assert added <= (max(count, 0) if type(count) is int else 0)
    notes = "\n".join(read.notes)
    if not isinstance(response, dict) or "total_added_to_sequence" not in response:
        assert _shown(response) in notes
        return
    for name, value in response.items():
        if name in ("total", "total_added_to_sequence") or not value:
            continue
        duplicates = re.fullmatch("duplicate_emails|duplicate_[a-z0-9_]+_urls", name)
        status = "duplicate_in_request" if duplicates else name.removesuffix("_and_skipped")
        entries = value if isinstance(value, list) and status not in (name, "") else [value]
        for entry in entries:
            rows = [row for row, lead in zip(read.rows, leads, strict=True) if _names(entry, lead)]
            own = any(row.status in (status, name) for row in rows)
            assert own or _shown(entry) in notes or (rows and status in notes)


@st.composite
def peculiar_services(draw: st.DrawFn) -> tuple[list[Lead], dict[str, Any], list[bool]]:
    """Draw a request, the response of a service that counts correctly, and whether leads are added.

    The service compares leads in its own way, adds at most one of several equal leads, lists any of
    them as duplicates, and may list skipped leads with other identifiers.
    """
    leads = draw(LEADS)
    person = [draw(st.integers(0, 5)) if draw(st.booleans()) else 10 + n for n in range(len(leads))]
    added = [True] * len(leads)
    response: dict[str, Any] = {}
    for same in set(person):
        group = [row for row, who in enumerate(person) if who == same]
        if len(group) > 1:
            kept = draw(st.sampled_from([None, *group]))
            for row in group:
                added[row] = row == kept
            for row in draw(st.sets(st.sampled_from(group), min_size=1)):
                place = draw(st.sampled_from([0, 1] if all(leads[row]) else [0, 1][:1]))
                text = leads[row][place] or leads[row][1 - place]
                name = "duplicate_emails" if "@" in str(text) else "duplicate_profnet_urls"
                response.setdefault(name, []).append(text)
    for row, lead in enumerate(leads):
        if added[row] and draw(st.booleans()):
            added[row] = False
            book = {"email": f"old-{row}@example.org", "profnet_url": draw(st.none() | WORDS)}
            entry = draw(st.sampled_from([book, draw(echoes(lead))]))
            response.setdefault(draw(st.sampled_from(SKIP_LISTS + NEW_LISTS)), []).append(entry)
    response |= {"total": len(leads), "total_added_to_sequence": sum(added)}
    return leads, response, added


@share_of_examples(2)
@given(peculiar_services())
def test_never_a_false_status(case: tuple[list[Lead], dict[str, Any], list[bool]]) -> None:
    """No status is false, even if the service compares and spells leads in its own way."""
    leads, response, added = case
    for status, true in zip(found(response, leads), added, strict=True):
        assert status == "unknown" or (status == "added") is true
