"""The account of the sandbox's world: its users, mailboxes and sequences, made from the seed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from outreach_frames import spec
from outreach_frames.sandbox.add_leads import MAX_LEADS_PER_SEQUENCE
from outreach_frames.sandbox.world import User

# The day on which every world stands still, so that the same seed gives the same world.
TODAY = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)

MAILBOXES = 26
PLAIN_SEQUENCES = 34
ROOM_IN_NEARLY_FULL = 10


@dataclass(frozen=True, slots=True)
class Abilities:
    """What one of the account's users has set up."""

    dialer: bool = True
    copywriter: bool = True
    profnet_account: bool = True
    voice_clone: bool = True
    ai_credits: int = 1_000_000
    sender_fields: tuple[str, ...] = ("calendar_link", "signature")


# One user can do everything; each of the others lacks what a sequence below needs.
ABILITIES = (
    Abilities(),
    Abilities(dialer=False),
    Abilities(voice_clone=False),
    Abilities(profnet_account=False),
    Abilities(copywriter=False),
    Abilities(ai_credits=0, sender_fields=("signature",)),
)
ABLE, NO_DIALER, NO_VOICE, NO_PROFNET, NO_COPYWRITER, NO_CREDITS = range(len(ABILITIES))


@dataclass(frozen=True, slots=True)
class Design:
    """A sequence as someone designed it in the web app."""

    name: str
    status: str = "active"
    user: int = ABLE
    stages: tuple[str, ...] = ("email", "email")
    shows: str | None = None
    conditional_logic: bool = False
    lead_fields: tuple[str, ...] = ()
    sender_fields: tuple[str, ...] = ()
    broken_mailbox: bool = False
    finished_leads: int = 0
    locked: bool = False


# Sequences that each show one thing about adding leads; `Sandbox.sequence_ids` finds them.
SHOWING = (
    Design("Founders Nordics: profile visits", shows="accepts_any", stages=("profnet_visit",)),
    Design("CFO outreach DACH", shows="needs_email"),
    Design("Webinar follow-up Logistics", "paused", shows="paused"),
    Design(
        "Multichannel Heads of HR",
        shows="conditional_email",
        stages=("profnet_invitation", "email"),
        conditional_logic=True,
    ),
    Design(
        "Newsletter win-back",
        shows="nearly_full",
        finished_leads=MAX_LEADS_PER_SEQUENCE - ROOM_IN_NEARLY_FULL,
    ),
    Design("Spring campaign 2027 (not launched)", "draft", shows="invalid_sequence_status"),
    Design(
        "Tailored intro Manufacturing",
        user=NO_CREDITS,
        stages=("copywriter_email",),
        shows="missing_ai_credits",
    ),
    Design(
        "Copywriter test Retail",
        user=NO_COPYWRITER,
        stages=("copywriter_email",),
        shows="missing_feature_copywriter",
    ),
    Design(
        "Call first: Energy",
        user=NO_DIALER,
        stages=("phone_call", "email"),
        shows="missing_feature_dialer",
    ),
    Design(
        "Invitations Healthcare",
        user=NO_PROFNET,
        stages=("profnet_invitation",),
        shows="missing_profnet_account",
    ),
    Design("Voice notes Fintech", user=NO_VOICE, stages=("voice",), shows="missing_voice_clone"),
    Design(
        "Personal opener SaaS",
        lead_fields=("first_name", "company_name"),
        shows="missing_lead_field",
    ),
    Design(
        "Book a demo Benelux",
        user=NO_CREDITS,
        sender_fields=("calendar_link",),
        shows="missing_sender_field",
    ),
    Design("Renewals Q2", broken_mailbox=True, shows="mailbox_unusable"),
    Design(
        "All customers since 2019",
        finished_leads=MAX_LEADS_PER_SEQUENCE,
        shows="max_leads_threshold_reached",
    ),
    Design("Partner programme", locked=True, shows="other_validation_error"),
    Design(
        "Old event invitation",
        "archived",
        user=NO_DIALER,
        stages=("phone_call", "email"),
        lead_fields=("first_name",),
        locked=True,
        shows="several_errors",
    ),
)

AUDIENCES = (
    "CFOs",
    "Heads of Sales",
    "Founders",
    "IT directors",
    "HR managers",
    "Operations leads",
    "Plant managers",
    "Marketing directors",
    "Procurement",
)
SEGMENTS = ("DACH", "Nordics", "Benelux", "Iberia", "UK & Ireland", "France", "US East", "APAC")
OCCASIONS = ("intro", "trade fair follow-up", "webinar", "win-back", "product launch", "referral")


def identifier(rng: random.Random) -> str:
    """Make an id of the form that sequences, mailboxes and users have."""
    return f"{rng.getrandbits(96):024x}"


def stamp(moment: datetime) -> str:
    """Write a moment the way that the service does."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def fill_account(connection: sqlite3.Connection, users: Sequence[User], *, seed: int) -> None:
    """Create the account's users, mailboxes and sequences."""
    rng = random.Random(f"account {seed}")
    connection.executemany(
        "INSERT INTO account_users VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                place,
                user.id,
                user.name,
                user.email,
                has.dialer,
                has.copywriter,
                has.profnet_account,
                has.voice_clone,
                has.ai_credits,
                orjson.dumps(has.sender_fields).decode(),
            )
            for place, (user, has) in enumerate(zip(users, ABILITIES, strict=True))
        ),
    )
    mailboxes = list(_mailboxes(users, rng))
    connection.executemany("INSERT INTO mailboxes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", mailboxes)
    usable: dict[str, list[str]] = {user.id: [] for user in users}
    broken = []
    for _, mailbox_id, _, _, _, status, user_id, *_ in mailboxes:
        if status == "active":
            usable[user_id].append(mailbox_id)
        else:
            broken.append(mailbox_id)
    designs = [*SHOWING, *_plain_designs(rng)]
    rng.shuffle(designs)
    connection.executemany(
        f"INSERT INTO sequences VALUES ({', '.join('?' * 17)})",  # noqa: S608
        (
            (place, *_sequence(design, users[design.user], usable, broken, rng))
            for place, design in enumerate(designs)
        ),
    )


MailboxRow = tuple[int, str, str, str, int, str, str, str, str]


def _mailboxes(users: Sequence[User], rng: random.Random) -> Iterator[MailboxRow]:
    """Yield rows that cover every provider and status, and give every user an active one."""
    domains = ("mail", "team", "hello", "get", "try")
    for place in range(MAILBOXES):
        user, turn = users[place % len(users)], place // len(users)
        local, _, domain = user.email.partition("@")
        active = turn in {0, 3}
        status = spec.MAILBOX_STATUSES[0 if active else place % len(spec.MAILBOX_STATUSES)]
        created = TODAY - timedelta(days=rng.randrange(60, 900), minutes=rng.randrange(1440))
        yield (
            place,
            identifier(rng),
            user.email if turn == 0 else f"{local}@{domains[turn]}.{domain}",
            spec.EMAIL_PROVIDERS[(place + turn) % len(spec.EMAIL_PROVIDERS)],
            rng.choice((20, 30, 40, 50, 50, 80, 100, 150)),
            status,
            user.id,
            stamp(created),
            stamp(created + timedelta(days=rng.randrange(1, 59))),
        )


def _plain_designs(rng: random.Random) -> Iterator[Design]:
    """Yield unremarkable sequences in all statuses, under names that do not repeat."""
    statuses = [*spec.SEQUENCE_STATUSES, *spec.SEQUENCE_STATUSES]
    usual = ("active", "active", "paused", "draft", "archived")
    names = [f"{who} {where}" for who in AUDIENCES for where in SEGMENTS]
    for place, name in enumerate(rng.sample(names, PLAIN_SEQUENCES)):
        year, quarter = rng.choice((2024, 2025, 2026)), rng.randrange(1, 5)
        yield Design(
            f"{name}: {rng.choice(OCCASIONS)} Q{quarter} {year}",
            statuses[place] if place < len(statuses) else rng.choice(usual),
            user=rng.randrange(len(ABILITIES)),
        )


def _sequence(
    design: Design,
    user: User,
    usable: dict[str, list[str]],
    broken: Sequence[str],
    rng: random.Random,
) -> tuple[object, ...]:
    created = TODAY - timedelta(days=rng.randrange(30, 700), minutes=rng.randrange(1440))
    mailboxes = usable[user.id][:2] + list(broken[:1] if design.broken_mailbox else ())
    return (
        identifier(rng),
        design.name,
        design.status,
        stamp(created),
        stamp(created + timedelta(days=rng.randrange(1, 29), minutes=rng.randrange(1440))),
        user.id,
        user.email,
        design.shows,
        orjson.dumps(design.stages).decode(),
        design.conditional_logic,
        orjson.dumps(design.lead_fields).decode(),
        orjson.dumps(design.sender_fields).decode(),
        orjson.dumps([user.id]).decode(),
        orjson.dumps(mailboxes).decode(),
        design.finished_leads,
        design.locked,
    )
