"""The command approve: a person sees an agent's plan in a terminal, and sends it."""

from __future__ import annotations

import json
import os
import pty
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pandas as pd
import pytest

from outreach_frames.agents.folder import Folder
from outreach_frames.agents.plan_file import SavedPlan, _digest, plan_leads, plan_status
from outreach_frames.client.client import Client
from outreach_frames.sandbox import Sandbox
from tests import forked, scripted
from tests.agents.programs import Agent, Terminal, run_here, wait_until
from tests.scripted import Received, Reply

pytestmark = pytest.mark.long

NAME = "Spring \x1b[2Jcampaign"
SHOWN = r"Spring \x1b[2Jcampaign"
PROMPT = "type the sequence's name: "


def write_leads(folder: Path, number: int, name: str = "leads.csv") -> None:
    """Write a file of leads."""
    rows = [f"lead{row}@x.example,Title {row}" for row in range(number)]
    (folder / name).write_text("\n".join(["email,title", *rows]) + "\n")


class Account:
    """A scripted account with one sequence, and an agent's folder with a plan for it."""

    def __init__(self, service: scripted.Service, folder: Path) -> None:
        self.service, self.folder = service, folder
        self.env = {
            "OUTREACH_BASE_URL": service.url,
            "OUTREACH_API_KEY": "secret-token-of-the-account",
            "XDG_DATA_HOME": str(folder.with_name("data")),
            "XDG_CACHE_HOME": str(folder.with_name("cache")),
        }

    def plan(self, file: str = "leads.csv", sequence_id: str = "s1", **arguments: Any) -> Path:
        """Write a plan as the tool does and return its path."""
        with Client(self.service.url, self.env["OUTREACH_API_KEY"], cache=None) as client:
            made = plan_leads(Folder(self.folder), client, file, sequence_id, **arguments)
        return self.folder / made["plan"]

    def approve(self, plan: Path, *options: str) -> Terminal:
        """Run approve in a terminal."""
        return Terminal("approve", plan, *options, env=self.env)

    def refusal(self, plan: Path, typed: str | None = None) -> str:
        """Run approve, which fails without sending anything, and return what it shows."""
        if typed is None:
            code, shown = run_here("approve", plan, env=self.env)
        else:
            terminal = self.approve(plan).read_until(PROMPT).type(typed)
            code, shown = terminal.end(), terminal.shown
        assert code != 0
        assert self.sent() == Counter()
        return shown

    def sent(self) -> Counter[str]:
        """Return how often each address was sent."""
        posts = [one for one in self.service.requests if one.method == "POST"]
        return Counter(lead["email"] for post in posts for lead in post.json["leads"])


def respond(received: Received) -> Reply:
    """List the sequences, or add all leads; the third request of a run never ends."""
    if received.method == "GET":
        return listing("active")
    leads = received.json["leads"]
    if any(lead["email"] == "lead25@x.example" for lead in leads):
        return Reply((scripted.FOREVER,))
    return scripted.json({"total": len(leads), "total_added_to_sequence": len(leads)})


def listing(status: str) -> Reply:
    """List two sequences; the first one has this status."""
    listed = [
        {"id": "s1", "name": NAME, "status": status},
        {"id": "s2", "name": "Autumn", "status": "active"},
    ]
    return scripted.json({"sequences": listed, "_links": {}})


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    """Start a scripted account."""
    folder = tmp_path / "agent"
    folder.mkdir()
    write_leads(folder, 5)
    with scripted.scripted(respond) as service:
        yield Account(service, folder)


def test_an_agent_plans_and_a_person_approves(
    agent: Agent, env: dict[str, str], sandbox: Sandbox
) -> None:
    """A plan is shown and sent once, and the agent reads its outcome."""
    sequence = sandbox.sequence_ids["accepts_any"]
    emails = ["one@approve.example", "two@approve.example", "n/a"]
    table = pd.DataFrame({"email": emails, "First Name": ["Ann", "Bo", "Cy"]})
    table.to_csv(agent.folder / "spring.csv", index=False)
    made = agent.reply(
        "plan_leads",
        file="spring.csv",
        sequence_id=sequence,
        data={"first_name": "First Name"},
        overrides={"ignore_recently_contacted": True},
    )
    assert made["counts"]["leads"] == 2
    name = made["sequence"].rpartition(", ")[0]
    path = agent.folder / made["plan"]
    terminal = Terminal("approve", path, env=env).read_until(PROMPT).type(name)
    assert terminal.end() == 4  # one row is invalid
    for words in (
        '* {"email": "one@approve.example", "data": {"first_name": "Ann"}',
        "2 of 3 rows of spring.csv will be sent",
        f"{name}, active ({sequence})",
        "first_name from 'First Name'",
        "  ignore_recently_contacted",
        "added          2",
    ):
        assert words in terminal.shown
    assert len(added(sandbox, sequence)) == 2
    again = Terminal("approve", path, env=env).read_until(PROMPT).type(name)
    assert again.end() == 4
    assert "0 of 2 rows remain. Recorded: 2 added on 20" in " ".join(again.shown.split())
    assert "dry_run" not in again.shown
    assert len(added(sandbox, sequence)) == 2
    outcome = {"approved": True, "outcomes": {"added": 2, "invalid": 1}}
    assert agent.reply("plan_status", plan=made["plan"]) == outcome
    assert env["OUTREACH_API_KEY"] not in terminal.shown + again.shown


def added(sandbox: Sandbox, sequence: str) -> list[Any]:
    """Return the sequence's leads of this test."""
    return [one for one in sandbox.leads(sequence) if "@approve.example" in str(one["email"])]


def test_the_name_must_be_typed(account: Account) -> None:
    """Control characters of the name are escaped; another name sends nothing."""
    plan = account.plan()
    shown = account.refusal(plan, "Autumn")
    assert "Another name was typed. Nothing was sent." in shown
    assert SHOWN in shown
    assert "\x1b" not in shown
    assert account.refusal(plan, "")
    assert "Traceback" not in account.refusal(plan, "\x04")
    assert account.approve(plan).read_until(PROMPT).type(SHOWN).end() == 0
    assert set(account.sent().values()) == {1}


def test_only_a_terminal_can_approve(account: Account) -> None:
    """If the input or the output is not a terminal, nothing is requested or sent."""
    plan = account.plan()
    before = len(account.service.requests)
    env = {**os.environ, **account.env}
    screen, inside = pty.openpty()
    for stdin, stdout in ((inside, subprocess.PIPE), (f"{SHOWN}\n", inside)):
        os.write(screen, f"{SHOWN}\n".encode())
        done = forked.run_command("approve", plan, stdin=stdin, stdout=stdout, env=env)
        assert done.returncode == 2
        assert "run it in a terminal" in done.stderr
    os.close(screen)
    os.close(inside)
    assert len(account.service.requests) == before


EDITS: dict[str, Any] = {
    "format": "outreach_frames plan 3",
    "created_at": "2099-01-01T00:00:00Z",
    "service": "https://other.example",
    "account": "0" * 16,
    "file": "other.csv",
    "sha256": {"leads.csv": "0" * 64},
    "sequence_id": "s2",
    "arguments": {"data": ["title"]},
    "sequence": "another",
    "counts": {"leads": 1},
    "digest": "0" * 64,
}


@pytest.mark.parametrize("field", [*EDITS, "more"])
def test_an_edited_plan_is_refused(account: Account, field: str) -> None:
    """A plan with any edited, missing or additional field is refused."""
    assert EDITS.keys() == set(SavedPlan.__struct_fields__)
    plan = account.plan()
    write_leads(account.folder, 5, "other.csv")
    content = json.loads(plan.read_bytes())
    edited = {**content, field: EDITS.get(field, 1)}
    lacking = {name: value for name, value in content.items() if name != field}
    for changed in (edited, lacking)[: 2 if field in content else 1]:
        plan.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match="Plan again"):
            plan_status(Folder(account.folder), plan.name)


def forged(plan: Path, **values: Any) -> Path:
    """Rewrite a plan with other values and a digest that fits them."""
    made = msgspec.structs.replace(msgspec.json.decode(plan.read_bytes(), type=SavedPlan), **values)
    made = msgspec.structs.replace(made, digest=_digest(made))
    plan.write_bytes(msgspec.json.encode(made))
    return plan


REFUSED: dict[str, Callable[[Account, Path], object]] = {
    "was edited": lambda _, plan: plan.write_bytes(
        plan.read_bytes().replace(b'"leads": 5', b'"leads": 6')
    ),
    "not in the last 24 hours": lambda _, plan: forged(
        plan, created_at=datetime.now(UTC) - timedelta(hours=25)
    ),
    "last 24 hours": lambda _, plan: forged(
        plan, created_at=datetime.now(UTC) + timedelta(hours=1)
    ),
    "another account": lambda _, plan: forged(plan, account="x"),
    "has changed since the plan": lambda account, _: write_leads(account.folder, 6),
    "has no sequence with the id 's9'": lambda _, plan: forged(plan, sequence_id="s9"),
}


@pytest.mark.parametrize("words", REFUSED)
def test_an_outdated_plan_is_refused(account: Account, words: str) -> None:
    """In a terminal, an edited, old or foreign plan is refused with the reason."""
    plan = account.plan()
    REFUSED[words](account, plan)
    assert words in account.refusal(plan)


@pytest.mark.parametrize(
    "values",
    [
        {"file": "../secret.csv"},
        {"file": "/etc/passwd"},
        {"arguments": {"client": None}},
        {"sequence_id": "../s1"},
        {"arguments": {"sequence_id": "s1"}},
        {"arguments": {"email": ["email"]}},
        {"arguments": {"data": {"a": ["title"]}}},
        {"arguments": {"overrides": [1]}},
        {"arguments": {"chunk_size": 1e99}},
    ],
    ids=str,
)
def test_a_forged_plan_sends_nothing(account: Account, values: dict[str, Any]) -> None:
    """A plan with a fitting digest and wrong values is an error without a traceback."""
    shown = account.refusal(forged(account.plan(), **values))
    assert "outreach-frames: " in shown
    assert "Traceback" not in shown


def test_a_forged_plan_is_shown_as_it_is_sent(account: Account) -> None:
    """What a person sees comes from the rebuilt requests, not from the plan's own words."""
    plan = forged(account.plan(data=["title"]), sequence="Harmless", counts={"leads": 0})
    terminal = account.approve(plan).read_until(PROMPT)
    assert "5 of 5 rows" in terminal.shown
    assert "Harmless" not in terminal.shown
    assert "title from 'title'" in terminal.shown
    terminal.type("Harmless").end()
    assert account.sent() == Counter()


def test_hostile_leads_cannot_forge_facts(account: Account) -> None:
    """Text of leads is on marked lines, without control characters, and facts come last."""
    fake = "x" * 70 + " \x1b[1A Sequence  Other, active\r\n  Sequence  Other"
    frame = pd.DataFrame({"email": ["a@x.example"], "note": [fake * 6]})
    frame.to_parquet(account.folder / "hostile.parquet")
    plan = account.plan("hostile.parquet", data=["note"])
    shown = account.refusal(plan, "Other")
    assert "Sequence  Other, active" in shown
    assert "\x1b" not in shown
    assert [
        line for line in shown.splitlines() if "Sequence  " in line and line[0] not in "*|"
    ] == [f"  Sequence     {SHOWN}, active (s1)"]


def test_two_terminals_send_a_plan_once(account: Account) -> None:
    """Two approvals of a plan at the same time send each lead once."""
    plan = account.plan(chunk_size=1)
    both = [account.approve(plan).read_until(PROMPT) for _ in range(2)]
    for terminal in both:
        terminal.type(SHOWN)
    codes = [terminal.end() for terminal in both]
    assert 0 in codes
    assert set(account.sent().values()) == {1}
    assert len(account.sent()) == 5


def test_a_killed_approval_is_resumed(account: Account) -> None:
    """After SIGKILL, the next approval sends the rest by a private journal, and nobody twice."""
    write_leads(account.folder, 50, "many.csv")
    plan = account.plan("many.csv", chunk_size=10)
    killed = account.approve(plan).read_until(PROMPT).type(SHOWN)
    wait_until(lambda: len(account.sent()) == 30)
    with pytest.raises(ValueError, match="in use"):
        plan_status_of(account, plan)
    killed.kill()
    resumed = account.approve(plan).read_until(PROMPT)
    shown = " ".join(resumed.shown.split())
    assert "20 of 50 rows remain. Recorded: 20 added on 20" in shown
    assert "10 unknown on 20" in shown
    assert resumed.type(SHOWN).end() == 4  # the request that was killed has no known outcome
    assert set(account.sent().values()) == {1}
    assert len(account.sent()) == 50
    outcomes = plan_status_of(account, plan)["outcomes"]
    assert outcomes == {"added": 40, "unknown": 10}
    retried = account.approve(plan, "--retry-unknown").read_until(PROMPT)
    assert "10 of 50 rows of many.csv will be sent" in " ".join(retried.shown.split())
    assert '* {"email": "lead20@x.example"' in retried.shown
    assert retried.type("no").end() != 0
    refused = account.approve(plan, "--send-again", "unknown")
    assert refused.end() != 0
    assert "takes skips of the service" in " ".join(refused.shown.split())
    assert sum(account.sent().values()) == 50
    (journal,) = Path(account.env["XDG_DATA_HOME"]).rglob("*.journal")
    assert journal.stat().st_mode & 0o777 == 0o600
    assert journal.parent.stat().st_mode & 0o777 == 0o700


def test_plans_of_one_sequence_know_each_other(account: Account) -> None:
    """Two plans of one file by different identifiers add each person once."""
    people = [f"lead{row}@x.example,https://profnet.example/in/lead{row}" for row in range(5)]
    (account.folder / "both.csv").write_text("\n".join(["email,profnet_url", *people, ""]))
    first = account.plan("both.csv", chunk_size=1)
    second = account.plan("both.csv", email=None)
    # One approval waits at its question while the other one sends.
    waiting = account.approve(second).read_until(PROMPT)
    assert account.approve(first).read_until(PROMPT).type(SHOWN).end() == 0
    assert plan_status_of(account, first) == {"approved": True, "outcomes": {"added": 5}}
    assert plan_status_of(account, second) == {"approved": False, "outcomes": {}}
    assert waiting.type(SHOWN).end() == 0
    assert sum(account.sent().values()) == 5
    again = account.approve(second).read_until(PROMPT)
    assert "0 of 5 rows remain" in " ".join(again.shown.split())
    assert again.type("no").end() != 0


def test_only_remaining_rows_are_shown(account: Account) -> None:
    """Leads, counts and problems are those of the rows that remain, and of invalid rows."""
    first = ["lead0@x.example,{{title}}", "lead1@x.example,CEO", "n/a,CTO"]
    later = ["lead2@x.example,", "lead3@x.example,tbd", "LEAD0@x.example,CEO"]
    for name, rows in {"first.csv": first, "all.csv": [*first, *later]}.items():
        (account.folder / name).write_text("\n".join(["email,title", *rows, ""]))
    plan = account.plan("first.csv", data=["title"])
    assert account.approve(plan).read_until(PROMPT).type(SHOWN).end() == 4
    waiting = account.approve(account.plan("all.csv", data=["title"])).read_until(PROMPT)
    shown = waiting.shown
    assert "2 of 4 rows remain. Recorded: 2 added on 20" in " ".join(shown.split())
    assert [line for line in shown.splitlines() if line[0] == "*"] == [
        '* {"email": "lead2@x.example"}',
        '* {"email": "lead3@x.example", "data": {"title": "tbd"}}',
    ]
    for words in (
        "2 of 6 rows of all.csv will be sent; the first leads are above.",
        "  Not sent     1 invalid row, 1 duplicate",
        "  Data fields  title: missing in 1 lead, a placeholder in 1 lead",
        "  Problems     placeholder 1, missing_identifier 1, placeholder_text 1",
        "To send 2 leads, type",
    ):
        assert words in shown
    assert waiting.type(SHOWN).end() == 4
    assert set(account.sent().values()) == {1}
    nothing = account.approve(account.plan("all.csv", data=["title"])).read_until(PROMPT)
    assert "0 of 6 rows of all.csv will be sent.\n" in nothing.shown
    assert "*" not in nothing.shown
    assert nothing.type(SHOWN).end() == 4
    assert sum(account.sent().values()) == 4


def test_a_held_journal_ends_an_approval_before_the_question(account: Account) -> None:
    """While an approval sends, others of its sequence end at once, and of another one send."""
    write_leads(account.folder, 50, "many.csv")
    plan = account.plan("many.csv", chunk_size=25)
    holding = account.approve(plan).read_until(PROMPT).type(SHOWN)
    wait_until(lambda: len(account.sent()) == 50)
    code, shown = run_here("approve", account.plan(), env=account.env)
    assert code == 2
    assert "is in use. Wait for the other run to end" in shown
    assert "Nothing was sent." in shown
    assert PROMPT not in shown
    other = account.approve(account.plan(sequence_id="s2")).read_until(PROMPT).type("Autumn")
    assert other.end() == 0
    holding.kill()
    assert account.sent()["lead0@x.example"] == 2  # once per sequence


@pytest.mark.parametrize("name", ["s1", "gone"])
def test_a_sequence_far_down_the_list_is_found(name: str, tmp_path: Path) -> None:
    """The name of a sequence on a late page is asked for; a missing sequence stops the approval."""

    def page_of_ten(received: Received) -> Reply:
        if received.method == "POST":
            return respond(received)
        number = int(parse_qs(urlsplit(received.target).query).get("page[after]", ["0"])[0]) + 1
        items = [{"id": f"other{number}", "name": f"Other {number}", "status": "active"}]
        if number == 10:
            items.append({"id": name, "name": NAME, "status": "active"})
        links = {} if number == 10 else {"next": {"href": f"/sequences?page[after]={number}"}}
        return scripted.json({"sequences": items, "_links": links})

    (tmp_path / "agent").mkdir()
    write_leads(tmp_path / "agent", 5)
    with scripted.scripted(page_of_ten) as service:
        account = Account(service, tmp_path / "agent")
        plan = account.plan()
        if name == "s1":
            assert account.approve(plan).read_until(PROMPT).type(SHOWN).end() == 0
            assert len(account.sent()) == 5
        else:
            shown = " ".join(account.refusal(plan).split())
            assert "no sequence with the id 's1'" in shown
            assert "Nothing was sent." in shown


@pytest.mark.parametrize("damage", ["other sequence", "cut", "other format"])
def test_unreadable_journals_stop_an_approval(account: Account, damage: str) -> None:
    """A journal that cannot be loaded stops the approvals of its sequence; the error names it."""
    plan = account.plan()
    assert account.approve(plan).read_until(PROMPT).type(SHOWN).end() == 0
    account.service.requests.clear()
    (journal,) = Path(account.env["XDG_DATA_HOME"]).rglob("*.journal")
    if damage == "cut":
        journal.write_bytes(journal.read_bytes()[:5000])
    with closing(sqlite3.connect(journal)) as connection, connection:
        if damage == "other format":
            connection.execute("PRAGMA user_version = 6")
        elif damage == "other sequence":
            sequence = msgspec.msgpack.encode((account.service.url, "s2"))
            connection.execute("UPDATE header SET sequence = ?", (sequence,))
    shown = " ".join(account.refusal(plan).split())
    assert journal.name in "".join(shown.split())
    assert "Nothing was sent." in shown


def plan_status_of(account: Account, plan: Path) -> dict[str, Any]:
    """Return what the agent is told of a plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", account.env["XDG_DATA_HOME"])
        return plan_status(Folder(account.folder), plan.name)
