"""Write a plan to a file, which a person approves, and read it back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from outreach_frames.agents.folder import Folder, Snapshot
from outreach_frames.client.client import Client
from outreach_frames.common.text import quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.leads.plan import SubmissionPlan, make_plan, report

FORMAT: Final = "outreach_frames plan 1"
# Parameters of a plan that only Python code can pass.
HIDDEN: Final = frozenset({"client", "earlier_keys"})
_ARGUMENTS: Final = signature(make_plan).parameters.keys() - HIDDEN - {"frame"}


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A plan: the leads' file, how to send it, and what was found when the plan was made."""

    format: str
    created_at: datetime
    service: str
    account: str
    file: str
    sha256: dict[str, str]
    arguments: dict[str, Any]
    sequence: dict[str, str | None]
    counts: dict[str, int]
    problems: dict[str, int]
    # The digest of all other fields.
    digest: str = ""

    def computed_digest(self) -> str:
        """Compute the digest, which depends on the values but not on the file's layout."""
        bare = msgspec.structs.replace(self, digest="")
        return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()

    def journal(self) -> Path:
        """Return the path of the plan's journal, in the user's data folder."""
        return journals_folder() / f"{self.computed_digest()}.journal"

    def prepare(self, snapshot: Snapshot, client: Client) -> SubmissionPlan:
        """Build the requests from the leads' file; nothing is sent."""
        return make_plan(snapshot.frame(), client=client, **self.arguments)


def journals_folder() -> Path:
    """Return the folder of the journals of approved plans."""
    return Path(platformdirs.user_data_dir("outreach_frames")) / "approved"


def plan_leads(folder: Folder, file: str, arguments: Mapping[str, Any], client: Client) -> Any:
    """Write a plan to a new file, and return its name and content."""
    snapshot = folder.read(file)
    prepared = make_plan(snapshot.frame(), client=client, **arguments)
    unsent = prepared.unsent["status"].value_counts()
    problems = prepared.problems["code"].value_counts()
    plan = Plan(
        format=FORMAT,
        created_at=datetime.now(UTC).replace(microsecond=0),
        service=client.base_url,
        account=client.account,
        file=snapshot.name,
        sha256=snapshot.digests,
        arguments=dict(arguments),
        sequence={"name": prepared.sequence.name, "status": prepared.sequence.status},
        counts={
            "rows": len(prepared.frame),
            "leads": len(prepared.positions),
            "requests": len(prepared.chunks()),
            **{str(status): int(rows) for status, rows in unsent.items()},
        },
        problems={str(code): int(rows) for code, rows in problems.items()},
    )
    plan = msgspec.structs.replace(plan, digest=plan.computed_digest())
    content = msgspec.json.format(msgspec.json.encode(plan), indent=2)
    name = f"plan-{plan.digest[:12]}.json"
    folder.create(name, lambda path: path.write_bytes(content))
    return {"plan": name, **msgspec.to_builtins(plan)}


def read_plan(folder: Folder, name: str) -> tuple[Plan, Snapshot]:
    """Read a plan and its leads' file; raise if either was changed."""
    (content, *_) = folder.read(name).contents.values()
    try:
        plan = msgspec.json.decode(content, type=Plan)
        is_plan = plan.format == FORMAT and plan.arguments.keys() <= _ARGUMENTS
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{quoted(name)} is not a plan: {error}. Plan again.") from error
    if not is_plan or plan.digest != plan.computed_digest():
        raise InvalidInputError(
            f"{quoted(name)} was edited, or was written by another version. Plan again."
        )
    snapshot = folder.read(plan.file)
    if snapshot.digests != plan.sha256:
        raise InvalidInputError(
            f"{quoted(plan.file)} was changed after it was planned. Plan again."
        )
    return plan, snapshot


def plan_status(plan: str, *, folder: Folder) -> dict[str, Any]:
    """Count the rows of a plan per outcome.

    Parameters
    ----------
    plan : str
        The name of a plan's file.

    Returns
    -------
    dict
        approved: whether a person has approved the plan and its sending has begun; outcomes: the
        number of rows per status.

    Raises
    ------
    InvalidInputError
        The plan or the leads' file was changed or is missing, or the plan is being sent.
    """
    planned, snapshot = read_plan(folder, plan)
    journal = planned.journal()
    if not journal.exists():
        return {"approved": False, "outcomes": {}}
    known = signature(report).parameters
    columns = {name: value for name, value in planned.arguments.items() if name in known}
    counts = report(snapshot.frame(), journal=journal, **columns).rows["status"].value_counts()
    return {"approved": True, "outcomes": {str(one): int(rows) for one, rows in counts.items()}}
