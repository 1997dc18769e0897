"""The account's users, mailboxes and sequences, generated from the seed."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta

from outreach_frames import spec
from outreach_frames.sandbox.add_leads import MAX_LEADS_PER_SEQUENCE
from outreach_frames.sandbox.store import Row, as_text, insert
from outreach_frames.sandbox.vocabulary import WORDS
from outreach_frames.sandbox.world import TODAY, User

MAILBOXES = 26
PLAIN_SEQUENCES = 34
ROOM_IN_NEARLY_FULL = 10


@dataclass(frozen=True, slots=True)
class Abilities:
    """The features that a user of the account has set up."""

    dialer: bool = True
    copywriter: bool = True
    profnet_account: bool = True
    voice_clone: bool = True
    ai_credits: int = 1_000_000
    sender_fields: tuple[str, ...] = ("calendar_link", "signature")


# The first user has every feature; every other user lacks a feature that a sequence below needs.
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
    """A sequence as designed in the web app."""

    name: str
    status: str = "active"
    user: int = ABLE
    stages: tuple[str, ...] = ("email", "email")
    shows: str | None = None  # the demonstrated outcome of adding leads
    conditional_logic: bool = False
    lead_fields: tuple[str, ...] = ()
    sender_fields: tuple[str, ...] = ()
    broken_mailbox: bool = False
    finished_leads: int = 0
    locked: bool = False


# Each sequence demonstrates one outcome of adding leads; `Sandbox.sequence_ids` lists the ids.
DEMO_SEQUENCES = (
    Design("Founders Nordics: profile visits", shows="accepts_any", stages=("profnet_visit",)),
    Design("CFO outreach DACH", shows="needs_email"),
    Design("Webinar follow-up Logistics", status="paused", shows="paused"),
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
    Design("Spring campaign (not launched)", status="draft", shows="invalid_sequence_status"),
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
    Design("Renewals {quarter}", broken_mailbox=True, shows="mailbox_unusable"),
    Design(
        "All customers since 2019",
        finished_leads=MAX_LEADS_PER_SEQUENCE,
        shows="max_leads_threshold_reached",
    ),
    Design("Partner programme", locked=True, shows="other_validation_error"),
    Design(
        "Old event invitation",
        status="archived",
        user=NO_DIALER,
        stages=("phone_call", "email"),
        lead_fields=("first_name",),
        locked=True,
        shows="several_errors",
    ),
)


def new_hex_id(rng: random.Random) -> str:
    """Return a random id in the format of sequence, mailbox and user ids."""
    return f"{rng.getrandbits(96):024x}"


def random_moment(rng: random.Random, min_days: int, max_days: int) -> datetime:
    """Return a time in office hours, a random number of days before the world's date."""
    day = TODAY - timedelta(days=rng.randrange(min_days, max_days))
    return datetime.combine(day, time(rng.randrange(7, 18), rng.randrange(60)), UTC)


def format_timestamp(moment: datetime) -> str:
    """Format a time as the service does."""
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def fill_account(connection: sqlite3.Connection, users: Sequence[User], *, seed: int) -> None:
    """Insert the account's users, mailboxes and sequences."""
    rng = random.Random(f"account {seed}")
    insert(
        connection,
        "account_users",
        (
            {**user._asdict(), "abilities": as_text(abilities)}
            for user, abilities in zip(users, ABILITIES, strict=True)
        ),
    )
    mailboxes = list(_mailboxes(users, rng))
    insert(connection, "mailboxes", mailboxes)
    designs = (*DEMO_SEQUENCES, *_plain_designs(rng))
    sequences = [_sequence(each, users[each.user], mailboxes, rng) for each in designs]
    sequences.sort(key=lambda row: row["created_at"], reverse=True)
    insert(connection, "sequences", sequences)


def _mailboxes(users: Sequence[User], rng: random.Random) -> Iterator[Row]:
    """Yield mailboxes of every provider and status, at least one active per user."""
    domains = ("mail", "team", "hello", "get", "try")
    for place in range(MAILBOXES):
        user, turn = users[place % len(users)], place // len(users)
        local, _, domain = user.email.partition("@")
        always_active = turn in {0, 3}
        created = random_moment(rng, 60, 900)
        yield {
            "id": new_hex_id(rng),
            "email": user.email if turn == 0 else f"{local}@{domains[turn]}.{domain}",
            "email_provider": spec.EMAIL_PROVIDERS[(place + turn) % len(spec.EMAIL_PROVIDERS)],
            "daily_email_limit": rng.choice((20, 30, 40, 50, 50, 80, 100, 150)),
            "status": "active" if always_active else spec.MAILBOX_STATUSES[place % 3],
            "user_id": user.id,
            "created_at": format_timestamp(created),
            "updated_at": format_timestamp(created + timedelta(days=rng.randrange(1, 59))),
        }


def _plain_designs(rng: random.Random) -> Iterator[Design]:
    """Yield ordinary sequences in all statuses, with unique names."""
    statuses = [*spec.SEQUENCE_STATUSES, *spec.SEQUENCE_STATUSES]
    usual = ("active", "active", "paused", "draft", "archived")
    words = WORDS["sequence_names"]
    names = [f"{one} {segment}" for one in words["audiences"] for segment in words["segments"]]
    for place, name in enumerate(rng.sample(names, PLAIN_SEQUENCES)):
        yield Design(
            f"{name}: {rng.choice(words['occasions'])} {{quarter}}",
            status=statuses[place] if place < len(statuses) else rng.choice(usual),
            user=rng.randrange(len(ABILITIES)),
        )


def _sequence(design: Design, user: User, mailboxes: Sequence[Row], rng: random.Random) -> Row:
    created = random_moment(rng, 30, 700)
    senders = [box for box in mailboxes if box["user_id"] == user.id and box["status"] == "active"]
    if design.broken_mailbox:
        senders += [box for box in mailboxes if box["status"] == "needs_reconnection"][:1]
    return {
        "id": new_hex_id(rng),
        "name": design.name.format(quarter=f"Q{(created.month + 2) // 3} {created.year}"),
        "status": design.status,
        "created_at": format_timestamp(created),
        "updated_at": format_timestamp(created + timedelta(days=rng.randrange(1, 29))),
        "created_by_user_id": user.id,
        "created_by_user_email": user.email,
        "shows": design.shows,
        "design": as_text({**asdict(design), "mailbox_ids": [box["id"] for box in senders]}),
    }
