"""Write a plan to a file, which a person approves, and read it back."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from outreach_frames.agents.folder import Contents, Folder, parse
from outreach_frames.client.client import Client
from outreach_frames.common.text import printable, quoted
from outreach_frames.errors import InvalidInputError
from outreach_frames.files.read import read_as_text
from outreach_frames.leads.plan import SubmissionPlan, make_plan, report

FORMAT: Final = "outreach_frames plan 2"
# Parameters of `make_plan` that are not in a plan.
HIDDEN: Final = frozenset({"frame", "sequence_id", "client"})


class SavedPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The leads' file, how to send it, and the rows' counts when the plan was made."""

    format: str
    created_at: datetime
    service: str
    account: str
    file: str
    sha256: dict[str, str]
    sequence_id: str
    sequence: str
    arguments: dict[str, str | bool | int | list[str] | dict[str, str | bool] | None]
    counts: dict[str, int]
    # The digest of all other values.
    digest: str = ""

    def prepare(self, contents: Contents, client: Client) -> SubmissionPlan:
        """Build the requests from the content of the leads' file."""
        arguments: dict[str, Any] = {**self.arguments}
        frame = parse(contents, read_as_text)
        return make_plan(frame, self.sequence_id, client=client, **arguments)


def plan_leads(
    folder: Folder, client: Client, file: str, sequence_id: str, **arguments: Any
) -> dict[str, Any]:
    """Write a plan to a new file, and return its name, sequence and counts."""
    contents = folder.read(file)
    prepared = make_plan(parse(contents, read_as_text), sequence_id, client=client, **arguments)
    unsent, problems = prepared.unsent["status"], prepared.problems["code"]
    plan = SavedPlan(
        format=FORMAT,
        created_at=datetime.now(UTC),
        service=client.base_url,
        account=client._session.account,
        file=next(iter(contents)),
        sha256=_digests(contents),
        sequence_id=sequence_id,
        sequence=printable(f"{prepared.sequence.name}, {prepared.sequence.status}"),
        arguments=arguments,
        counts={"leads": len(prepared.positions), **Counter(unsent), **Counter(problems)},
    )
    plan = msgspec.structs.replace(plan, digest=_digest(plan))
    name = f"plan-{plan.digest[:12]}.json"
    content = msgspec.json.format(msgspec.json.encode(plan))
    folder.create(name, lambda path: path.write_bytes(content))
    return {"plan": name, "sequence": plan.sequence, "counts": plan.counts}


def read_plan(folder: Folder, name: str) -> tuple[SavedPlan, Contents]:
    """Read a plan and its leads' file; raise if either was changed."""
    try:
        plan = msgspec.json.decode(next(iter(folder.read(name).values())), type=SavedPlan)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{quoted(name)} is not a plan: {error}. Plan again.") from error
    known = signature(make_plan).parameters.keys() - HIDDEN
    if (plan.format, plan.digest) != (FORMAT, _digest(plan)) or plan.arguments.keys() - known:
        raise InvalidInputError(f"{quoted(name)} was edited after it was planned. Plan again.")
    contents = folder.read(plan.file)
    if _digests(contents) != plan.sha256:
        raise InvalidInputError(f"{quoted(plan.file)} has changed since the plan. Plan again.")
    return plan, contents


def plan_status(folder: Folder, plan: str) -> dict[str, Any]:
    """Count the rows of a plan by outcome, after a person has approved the plan.

    Parameters
    ----------
    plan : str
        The name of the plan's file.

    Returns
    -------
    dict
        Whether sending has begun, and the number of rows per status.

    Raises
    ------
    InvalidInputError
        The plan or the leads' file is missing or was changed, or the plan is being sent.
    """
    approved, contents = read_plan(folder, plan)
    journal = journal_of(approved)
    if not (_approval_of(approved).exists() and journal.exists()):
        return {"approved": False, "outcomes": {}}
    known = signature(report).parameters
    arguments: dict[str, Any] = {
        name: value for name, value in approved.arguments.items() if name in known
    }
    sent = report(parse(contents, read_as_text), journal=journal, **arguments)
    return {"approved": True, "outcomes": Counter(sent.rows["status"])}


def journal_of(plan: SavedPlan) -> Path:
    """Return the path of the journal that all approved plans of a sequence share."""
    name = sha256(msgspec.json.encode([plan.service, plan.sequence_id])).hexdigest()
    return _approvals_folder() / f"{name}.journal"


def record_approval(plan: SavedPlan) -> None:
    """Record that a person has approved a plan; its journal also has the rows of other plans."""
    _approval_of(plan).touch(0o600)


def _approval_of(plan: SavedPlan) -> Path:
    return _approvals_folder() / f"{plan.digest}.approved"


def _approvals_folder() -> Path:
    """Return the folder of approvals, outside the agent's folder."""
    return Path(platformdirs.user_data_dir("outreach_frames")) / "approved"


def _digests(contents: Contents) -> dict[str, str]:
    return {name: sha256(content).hexdigest() for name, content in contents.items()}


def _digest(plan: SavedPlan) -> str:
    """Return the digest of a plan's values, whatever the file's layout."""
    bare = msgspec.structs.replace(plan, digest="")
    return sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()
