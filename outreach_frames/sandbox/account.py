"""The account's users, mailboxes and sequences, generated from the seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from itertools import product

from outreach_frames import spec
from outreach_frames.sandbox.rules import link
from outreach_frames.sandbox.store import Account, Row
from outreach_frames.sandbox.world import ACCOUNT, TODAY, WORDS, User

MAILBOXES = 26
PLAIN_SEQUENCES = 34
# The first user has every feature; every other user lacks a feature that a sequence needs.
ABILITIES = {name: {**ACCOUNT["abilities"], **own} for name, own in ACCOUNT["users"].items()}


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


def new_account(users: Sequence[User], *, seed: int) -> Account:
    """Return an account with users, mailboxes and sequences, but without contacts and leads."""
    rng = random.Random(f"account {seed}")
    mailboxes = list(_mailboxes(users, rng))
    owners = dict(zip(ABILITIES, users, strict=True))
    designs = [ACCOUNT["sequence"] | own for own in (*ACCOUNT["sequences"], *_plain_designs(rng))]
    sequences = [_sequence(design, owners[design["user"]], mailboxes, rng) for design in designs]
    sequences.sort(key=lambda row: row["created_at"], reverse=True)
    return Account(
        {user.id: user._asdict() | ABILITIES[name] for name, user in owners.items()},
        {mailbox["id"]: mailbox for mailbox in mailboxes},
        {sequence["id"]: sequence for sequence in sequences},
    )


def _mailboxes(users: Sequence[User], rng: random.Random) -> Iterator[Row]:
    """Yield mailboxes of every provider and status, at least one active per user."""
    domains = ("mail", "team", "hello", "get", "try")
    for place in range(MAILBOXES):
        user, turn = users[place % len(users)], place // len(users)
        local, _, domain = user.email.partition("@")
        always_active = turn in {0, 3}
        created = random_moment(rng, 60, 900)
        identifier = new_hex_id(rng)
        yield {
            "id": identifier,
            "email": user.email if turn == 0 else f"{local}@{domains[turn]}.{domain}",
            "email_provider": spec.EMAIL_PROVIDERS[(place + turn) % len(spec.EMAIL_PROVIDERS)],
            "daily_email_limit": rng.choice((20, 30, 40, 50, 50, 80, 100, 150)),
            "status": "active" if always_active else spec.MAILBOX_STATUSES[place % 3],
            "user": user._asdict(),
            "created_at": format_timestamp(created),
            "updated_at": format_timestamp(created + timedelta(days=rng.randrange(1, 59))),
            spec.LINKS_KEY: {"self": link(spec.UPDATE_MAILBOX.path.format(id=identifier), {})},
            "user_email": user.email,
        }


def _plain_designs(rng: random.Random) -> Iterator[Row]:
    """Yield ordinary sequences in all statuses, with unique names."""
    statuses = [*spec.SEQUENCE_STATUSES, *spec.SEQUENCE_STATUSES]
    usual = ("active", "active", "paused", "draft", "archived")
    words = WORDS["sequence_names"]
    names = [" ".join(pair) for pair in product(words["audiences"], words["segments"])]
    for place, name in enumerate(rng.sample(names, PLAIN_SEQUENCES)):
        yield {
            "name": f"{name}: {rng.choice(words['occasions'])} {{quarter}}",
            "status": statuses[place] if place < len(statuses) else rng.choice(usual),
            "user": rng.choice(list(ABILITIES)),
        }


def _sequence(design: Row, user: User, mailboxes: Sequence[Row], rng: random.Random) -> Row:
    created = random_moment(rng, 30, 700)
    senders = [
        box for box in mailboxes if box["user"]["id"] == user.id and box["status"] == "active"
    ]
    if design["broken_mailbox"]:
        senders += [box for box in mailboxes if box["status"] == "needs_reconnection"][:1]
    return {
        **design,
        "id": new_hex_id(rng),
        "name": design["name"].format(quarter=f"Q{(created.month + 2) // 3} {created.year}"),
        "created_at": format_timestamp(created),
        "updated_at": format_timestamp(created + timedelta(days=rng.randrange(1, 29))),
        "created_by_user_id": user.id,
        "created_by_user_email": user.email,
        "senders": senders,
        "open_rate": 0.5,
        "reply_rate": 0.1,
    }
