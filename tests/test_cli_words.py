"""Messages on the command line name options instead of Python arguments."""

from __future__ import annotations

import json as json_module
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.client.client import Client
from outreach_frames.errors import InvalidInputError
from tests.scripted import json, scripted

pytestmark = pytest.mark.long


# Each command with words of its message; SEQUENCE and ARCHIVED are replaced by ids.
FAULTS = [
    ("search --limit 0", "Pass 1 or more, or --all to read all"),
    ("search --person-seniorities vp directr", "Run outreach-frames search --help"),
    ("search --company-ids 5", "--company-ids takes ids"),
    ("search --filters unknown.json", "search --help to list all filters"),
    ("search --filters paged.json", "with --limit, and people per request with --page-size"),
    ("search --filters other.json", "is not a saved search"),
    ("export people.csv --limit 0", "or no --limit"),
    ("export people.csv --page-size 500", "--page-size 500 is out of range"),
    ("export people.txt", ".parquet"),
    ("export none/people.csv", "create the folder"),
    ("find-people accounts.csv", "identified by --domain 'Web'"),
    ("find-people accounts.csv --domain Domain", "--domain: the table of accounts has no column"),
    ("find-people accounts.csv --domain Web --account-columns owner", "--account-columns: the tab"),
    ("find-people leads.csv", "as --company-id or --company-profnet-url or --domain or --comp"),
    ("find-people accounts.csv --domain Web --per-company 0", "or --all"),
    ("find-people accounts.csv --domain Web --company-domains a.example", "conflicts with --dom"),
    ("find-people accounts.csv --domain Web --person-titles Xyzzy", "outreach-frames explain"),
    ("snapshot people --date yesterday", "--date 'yesterday' is not a day"),
    ("snapshot leads.csv", "cannot be written"),
    ("sequences --status activ", "--status 'activ' is not one of"),
    ("sequences --name ''", "--name is blank"),
    ("count --by company_size", "--by 'company_size' is not a filter that includes people"),
    ("count --by person_titles", "Pass --person-titles too"),
    ("count --by person-title-exact-match --max-requests 2", "more than --max-requests 2"),
    ("count --by company-sizes --max-requests 0", "Pass 1 or more, or --no-max-requests to"),
    ("count --out people.csv", "Pass --by FILTER too"),
    ("contacts", "contacts needs ids, --emails or both"),
    ("contacts a@x.example", "Pass addresses as --emails"),
    ("contacts leads.csv", "is a file, not an id"),
    ("lead-list none", "There is no lead list 'none'"),
    ("capacity 10 --start 1.2.2026", "Pass it as YYYY-MM-DD, such as '2026-03-02'."),
    ("capacity -5", "LEADS -5 is negative"),
    ("capacity 999999999", "raise daily limits"),
    ("capacity 10 --email-days 1 3", "--email-days 1 3 is not an ascending list from 0"),
    ("compare folder", "Run outreach-frames snapshot on two days"),
    ("compare accounts.csv accounts.csv", "files of outreach-frames search"),
    ("compare folder --quiet", "Pass --out FILE"),
    ("forget", "Pass --email, --profnet-url or both"),
    ("forget --email x", "--email 'x'"),
    ("forget --email a@x.example --folder none", "cannot be read: not found"),
    ("add-leads leads.csv --sequence SEQUENCE --data 'First Name=first_name' n=Number",
        "--data 'First Name'='first_name': the table has no column 'first_name'. Did you"),
    ("add-leads leads.csv --sequence SEQUENCE --data 'First Name'",
        "Pass --data first_name='First Name'."),
    ("add-leads leads.csv --sequence SEQUENCE --data number", "Did you mean 'Number'"),
    ("add-leads leads.csv --sequence SEQUENCE --require Number", "--require has names that are"),
    ("add-leads leads.csv --sequence SEQUENCE --data email", "pass --email 'email'"),
    ("add-leads leads.csv --sequence SEQUENCE --data a=n --data a=n", "--data has the field"),
    ("add-leads leads.csv --sequence SEQUENCE --email Mail", "--email: the table has no column"),
    ("add-leads leads.csv --sequence SEQUENCE --profnet-url email",
        "--email and --profnet-url name the same column, 'email'. Pass two different columns"),
    ("add-leads leads.csv --sequence SEQUENCE --chunk-size 0", "--chunk-size 0"),
    ("add-leads leads.csv --sequence SEQUENCE --journal folder", "is a folder"),
    ("add-leads leads.csv --sequence SEQUENCE --results leads.csv", "Choose another folder"),
    ("add-leads accounts.csv --sequence SEQUENCE", "Pass a column: --email 'E-mail address'"),
    ("add-leads leads.csv --sequence nobody", "outreach-frames sequences lists all"),
    ("add-leads leads.csv --sequence ''", "--sequence '' is not an id"),
    ("add-leads leads.csv --sequence ARCHIVED", "Change its status in the web app"),
]  # fmt: skip
# Exit codes other than 2: of warnings, of an unknown resource and of leads that are not added.
CODES = {
    "search --person-seniorities vp directr": 0,
    "find-people accounts.csv": 0,
    "find-people accounts.csv --domain Web --person-titles Xyzzy": 0,
    "lead-list none": 1,
    "add-leads leads.csv --sequence ARCHIVED": 4,
}
PYTHON_ONLY = re.compile(
    r"\bof\.|=None|=True|=False|\(\)|client=|=\[|\bframe\b|base_url|\.attrs|spec\."
)


def assert_is_of_a_shell(told: str) -> None:
    """Assert that a message has no Python terms."""
    assert told.startswith("outreach-frames: ")
    assert not PYTHON_ONLY.search(told), told


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the files that the commands read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    leads = {"email": ["a@x.example"], "First Name": ["Ada"], "Number": ["1"]}
    pd.DataFrame(leads).to_csv("leads.csv", index=False)
    pd.DataFrame({"Web": ["a.example"]}).to_csv("accounts.csv", index=False)
    saved = {"kind": "outreach_frames people search", "version": 1}
    for name, filters in {
        "unknown": {"person_title": ["x"]},
        "paged": {"page": 3},
    }.items():
        Path(f"{name}.json").write_text(json_module.dumps({**saved, "filters": filters}))
    Path("other.json").write_text("{}")
    return tmp_path


@pytest.fixture
def shown_warnings() -> Iterator[None]:
    """Print warnings as Python does without pytest, which would capture them."""

    def show(*about: Any) -> None:
        sys.stderr.write(warnings.formatwarning(*about[:4]))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


@pytest.mark.usefixtures("environment", "folder", "shown_warnings")
def test_errors_and_warnings_name_options(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command's errors name its options and the next command, and exit with 2."""
    sequences = of.sequences().drop_duplicates("status").set_index("status")["id"]
    ids = {"SEQUENCE": sequences["active"], "ARCHIVED": sequences["archived"]}
    for line, words in FAULTS:
        code = main([ids.get(word, word) for word in shlex.split(line)])
        assert code == CODES.get(line, 2), line
        told = capsys.readouterr().err
        assert words in told, (line, told)
        assert_is_of_a_shell(told)


# Commands with a user's words that resemble Python, and these words in the message.
OWN_WORDS = [
    ("search --filters limit=None.json", "limit=None.json is not a saved search"),
    ("search --filters 'Call search_people().json'", "Call search_people().json cannot be read"),
    ("add-leads leads.csv --sequence 'df.plan()'", "no sequence with the id 'df.plan()'"),
    ("add-leads leads.csv --sequence x --email status=active", "no column 'status=active'"),
    ("add-leads columns.csv --sequence x --email Mail",
        "Its columns are 'email=None', 'of.filters()'."),
    ("add-leads leads.csv --sequence x --journal resume=False",
        "resume=False is not a journal of a submission"),
    ("export limit=None.txt", "limit=None.txt"),
    ("sequences --status limit=None", "--status 'limit=None' is not one of"),
]  # fmt: skip


@pytest.mark.usefixtures("environment", "folder", "shown_warnings")
@pytest.mark.parametrize(("line", "words"), OWN_WORDS)
def test_own_words_are_unchanged(
    line: str, words: str, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of files, columns and sequences are shown as they are, though they resemble Python."""
    Path("limit=None.json").write_text("{}")
    Path("resume=False").write_text("no journal")
    Path("columns.csv").write_text("email=None,of.filters()\na@x.example,1\n")
    sequence = of.sequences(status="active")["id"].iloc[0]
    assert main([sequence if word == "x" else word for word in shlex.split(line)]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_words_of_a_service_are_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the command shows a service's words as they are, with its own in options."""
    words = "Call search_people() with limit=None. df.plan() failed"
    with scripted(lambda _: json({"error": words}, status=401)) as service:
        monkeypatch.setenv("OUTREACH_BASE_URL", service.url)
        monkeypatch.setenv("OUTREACH_API_KEY", "token-of-tests")
        run = subprocess.run(
            [sys.executable, "-m", "outreach_frames", "sequences", "--refresh"],
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 1
    assert f"Log in again with outreach-frames login. (GET /sequences: 401, {words})" in run.stderr


@pytest.mark.usefixtures("environment", "folder")
def test_messages_of_later_calls_are_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that ran in this process leaves the messages of Python's functions unchanged."""
    assert main(["search", "--limit", "0"]) == 2
    assert "--limit 0 reads nothing" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match=r"limit=0 reads nothing.*limit=None"):
        of.search_people(limit=0)


@pytest.mark.usefixtures("folder")
def test_a_missing_connection_names_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an address or a token, the message names the variables and --sandbox."""
    for name in ("OUTREACH_BASE_URL", "OUTREACH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    lists = ["sequences", "mailboxes", "search", "export people.csv", "snapshot folder"]
    others = ["find-people accounts.csv --domain Web", "add-leads leads.csv --sequence x"]
    for address in (None, "http://127.0.0.1:9"):
        if address is not None:
            monkeypatch.setenv("OUTREACH_BASE_URL", address)
        for line in (*lists, *others):
            assert main(shlex.split(line)) == 2
            told = capsys.readouterr().err
            assert_is_of_a_shell(told)
            assert "Set OUTREACH_BASE_URL and OUTREACH_API_KEY" in told
            assert "--sandbox" in told


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("status", [400, 401, 404, 405, 422])
def test_advice_for_error_statuses_names_options(
    status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Advice for error statuses of the service names variables and options."""
    with scripted(lambda _: json({"error": "no"}, status=status)) as service:
        monkeypatch.setenv("OUTREACH_BASE_URL", service.url)
        monkeypatch.setenv("OUTREACH_API_KEY", "token-of-tests")
        for line in ("sequences --refresh", "search --refresh", "export people.csv"):
            assert main(shlex.split(line)) == 1
            told = capsys.readouterr().err
            assert_is_of_a_shell(told)
            assert "token-of-tests" not in told


@pytest.mark.usefixtures("environment")
def test_unknown_options_suggest_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown option is an error with the usage of its command and the nearest option."""
    with pytest.raises(SystemExit) as exit_:
        main(["search", "--person-seniority", "vp"])
    assert exit_.value.code == 2
    told = capsys.readouterr().err
    assert "Did you mean '--person-seniorities'?" in told
    assert told.startswith("usage: outreach-frames search")
