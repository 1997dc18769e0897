"""The people of a list with names and companies are found, or said not to be certain."""

from __future__ import annotations

import json as jsonlib
import uuid
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

import outreach_frames as of
from outreach_frames.cli import main
from outreach_frames.errors import InvalidInputError, OutreachError, OutreachWarning
from outreach_frames.sandbox import Sandbox
from tests.resources.search_service import connected, result
from tests.scripted import Received, Reply, json, scripted

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:Nobody matches:outreach_frames.errors.OutreachWarning"),
]

Served = tuple[str, str, str]  # full, first and last name
BROOKS = ("Thomas Brooks", "Thomas", "Brooks")


def served(number: int, name: Served, company: str = "Acme") -> dict[str, Any]:
    """Return a person of the scripted service."""
    full, first, last = name
    return {
        "id": str(uuid.UUID(int=number)),
        "object": "person",
        **{"name": full, "first_name": first, "last_name": last},
        "company": {"id": str(uuid.UUID(int=1000)), "name": company},
    }


def found_by(listed: Any, names: Sequence[Served], **options: Any) -> tuple[Any, list[Any]]:
    """Search one listed name, and return the result and the bodies of the requests."""
    cells = [listed] if isinstance(listed, str) else [*listed]
    frame = pd.DataFrame({f"name {place}": [cell] for place, cell in enumerate(cells)})
    columns = [*frame.columns] if len(cells) > 1 else frame.columns[0]
    people = [served(number, name) for number, name in enumerate(names)]
    with scripted(lambda _: result(people)) as service, connected(service):
        found = frame.assign(firm="ACME, Inc.").outreach.find_people(
            person_name=columns, company_name="firm", **options
        )
    return found, [request.json for request in service.requests]


EQUAL: list[tuple[Any, Served]] = [
    ("THOMAS  brooks", BROOKS),
    ("Brooks, Thomas", BROOKS),
    ("Brooks, Dr. Thomas M.", BROOKS),
    ("Prof. Dr. Thomas Brooks, PhD, MBA", BROOKS),
    ("Mr. Thomas Brooks", BROOKS),
    (("Thomas", "Brooks"), BROOKS),
    (("Dr. Thomas M.", "Brooks, Ph.D."), BROOKS),
    ("Thomas Michael Brooks", ("Thomas M. Brooks", "Thomas", "Brooks")),
    ("Thomas Brooks", ("Thomas Michael Brooks", "Thomas", "Brooks")),
    ("Thomas Brooks, Jr.", ("Thomas Brooks Jr", "Thomas", "Brooks Jr")),
    ("Brooks Jr., Thomas", ("Thomas Brooks, Jr.", "Thomas", "Brooks")),
    ("José Núñez", ("Jose Nunez", "Jose", "Nunez")),
    ("Jose\N{COMBINING ACUTE ACCENT} Nunez", ("José Núñez", "José", "Núñez")),
    ("O\N{RIGHT SINGLE QUOTATION MARK}Brien, Ann", ("Ann O'Brien", "Ann", "O'Brien")),
    ("Hans Peter Müller", ("Hans-Peter Muller", "Hans-Peter", "Muller")),
    ("Anna Smith Jones", ("Anna Smith-Jones", "Anna", "Smith-Jones")),
    ("Dipl.-Ing. Jörg Groß", ("Jorg Gross", "Jorg", "Gross")),
    ("Herr, Anna", ("Anna Herr", "Anna", "Herr")),
    (("Anna", "Herr"), ("Anna Herr", "Anna", "Herr")),
    ("Søren Łuk", ("Soren Luk", "Soren", "Luk")),
    (("Jan", "van der Berg"), ("Jan van der Berg", "Jan", "Berg")),
    ("Madonna", ("Madonna", "Madonna", "")),
    ("\u0401лкин, Пётр", ("Петр Елкин", "Петр", "Елкин")),
    ("Γιώργος Παππάς", ("Γιωργος Παππας", "Γιωργος", "Παππας")),
    ("王 伟", ("王伟", "伟", "王")),
    (("子涵", "罗"), ("罗子涵", "子涵", "罗")),
    ("임지우", ("임지우", "지우", "임")),
    (("Na", "Li"), ("Na Li", "Na", "Li")),
    ("J.R. Smith", ("JR Smith", "JR", "Smith")),
    (("Md", "Rahman"), ("Md Rahman", "Md", "Rahman")),
    ("Nguyễn Văn Đức", ("Nguyen Van Duc", "Duc", "Nguyen")),
    ("\u0130brahim Y\u0131ld\u0131z", ("Ibrahim Yildiz", "Ibrahim", "Yildiz")),
    ("Prof. Dr.-Ing. Anna Lee", ("Anna Lee", "Anna", "Lee")),
    ("Thomas Brooks", ("Thomas Brooks", "", "")),
]

SIMILAR: list[tuple[Any, Served]] = [
    ("T. Brooks", BROOKS),
    ("Brooks", BROOKS),
    ("Brooks Thomas", BROOKS),
    ("Thomas Brooks Jr.", BROOKS),
    ("Thomas Brooks", ("Thomas Brooks Sr.", "Thomas", "Brooks Sr.")),
    ("Thomas Brooks III", ("Thomas Brooks II", "Thomas", "Brooks II")),
    ("Thomas K. Brooks", ("Thomas Michael Brooks", "Thomas", "Brooks")),
    ("Hans Müller", ("Hans-Peter Müller", "Hans-Peter", "Müller")),
    ("Hans-Peter Müller", ("Hans Müller", "Hans", "Müller")),
    ("Anna Smith", ("Anna Smith-Jones", "Anna", "Smith-Jones")),
    ("Anna Smith-Jones", ("Anna Jones", "Anna", "Jones")),
    (("Anna", "Smith Jones"), ("Anna Jones", "Anna", "Jones")),
    ("Acme Inc.", BROOKS),
    ("Rahman", ("Md Rahman", "Md", "Rahman")),
    ("Garcia Lopez, Maria", ("Maria Lopez", "Maria", "Lopez")),
    ("Anna Lee", ("Anna Lee Smith", "Anna", "Lee Smith")),
    ("Thomas Brooks", ("", "", "")),
    ("ハナ", ("パナ", "パナ", "")),
    ("किरन", ("करन", "करन", "")),
    ("שרה", ("שרי", "שרי", "")),
]


@pytest.mark.parametrize(
    ("listed", "name", "match"),
    [
        *((listed, name, "equal") for listed, name in EQUAL),
        *((listed, name, "similar") for listed, name in SIMILAR),
    ],
)
def test_names_are_compared_in_every_spelling(listed: Any, name: Served, match: str) -> None:
    """Only a person with the listed name is found; a contradicting name is similar."""
    found, _ = found_by(listed, [name])
    assert found.people[["account_status", "name_match"]].to_numpy().tolist() == [
        ["found" if match == "equal" else "similar", match]
    ]


@pytest.mark.parametrize(
    ("listed", "sent"),
    [
        ("Brooks, Dr. Thomas M.", "Thomas Brooks"),
        ("BROOKS,  THOMAS", "THOMAS BROOKS"),
        (("Zoë A.", "Smith-Jones, MBA"), "Zoë Smith-Jones"),
        ("T. Brooks", "T. Brooks"),
        ("Prof. Brooks", "Brooks"),
        ("Thomas Brooks Jr.", "Thomas Brooks"),
        ("王 伟", "王 伟"),
        (("지우", "임"), "임지우"),
        (("tbd", "Brooks"), "Brooks"),
    ],
)
def test_a_name_is_sent_in_natural_order(listed: Any, sent: str) -> None:
    """A name keeps its letters, and loses its titles, degrees, suffix and initials."""
    _, (body,) = found_by(listed, [], person_seniorities=["vp", "director"])
    assert body == {
        "person_name": sent,
        "company_names": ["ACME, Inc."],
        "person_seniorities": ["vp", "director"],
        **{"page": 1, "page_size": 100},
    }


@pytest.mark.parametrize("listed", ["", "n/a", "#N/A", "Mr.", "?", ("", ""), ("tbd", "-")])
def test_a_row_without_a_name_is_invalid(listed: Any) -> None:
    """A row without a name, or without a company, is not searched."""
    found, bodies = found_by(listed, [BROOKS])
    assert found.accounts["account_status"].tolist() == ["invalid"]
    assert "no name" in found.accounts["account_detail"].iloc[0]
    assert bodies == []
    with of.connect("sandbox", people=5, cache=None):
        frame = pd.DataFrame({"Name": ["Ada Lee"], "Website": ["n/a"]})
        found = frame.outreach.find_people(person_name="Name", domain="Website")
    assert found.accounts["account_status"].tolist() == ["invalid"]


def test_people_of_one_name_are_never_found() -> None:
    """Two people of one name are several, the equal ones first, and then similar ones."""
    names = [("Tom Brooks", "Tom", "Brooks"), BROOKS, BROOKS]
    found, _ = found_by("Thomas Brooks", names)
    assert found.people["name_match"].tolist() == ["equal", "equal", "similar"]
    assert found.people["account_rank"].tolist() == [1, 2, 3]
    assert found.accounts["account_status"].tolist() == ["several"]
    assert "2 people of this name" in found.accounts["account_detail"].iloc[0]
    found, _ = found_by("Thomas Brooks", names[:2])
    assert found.people["name_match"].tolist() == ["equal"]


def test_at_most_ten_similar_people_are_listed() -> None:
    """The detail names the first similar people, and counts those that are not listed."""
    names = [(f"Thomas Brook{letter}", "Thomas", f"Brook{letter}") for letter in "abcdefghijkl"]
    found, _ = found_by("Thomas Brooks", names)
    assert found.accounts["account_people"].tolist() == [10]
    detail = found.accounts["account_detail"].iloc[0]
    assert detail.startswith("similar: Thomas Brooka at Acme, Thomas Brookb at Acme, ...")
    assert "2 other similar people are not listed" in detail
    assert found.accounts["account_company_name"].isna().all()


@pytest.mark.parametrize("total", [2, 101])
def test_a_name_is_not_found_while_people_are_unread(total: int) -> None:
    """If the service counts more people than one page has, the only equal one is uncertain."""
    with scripted(lambda _: result([served(1, BROOKS)], total=total)) as service:
        with connected(service):
            frame = pd.DataFrame({"Name": ["Thomas Brooks"], "Company": ["Acme"]})
            found = frame.outreach.find_people(person_name="Name", company_name="Company")
    assert found.accounts["account_status"].tolist() == ["several"]
    assert found.accounts["account_total"].tolist() == [total]
    assert f"counted {total} people; 1 were read" in found.accounts["account_detail"][0]
    assert len(service.requests) == 1


def test_another_company_of_a_name_is_similar() -> None:
    """With company names, a person at another company is similar; with other identifiers not."""
    people = [served(1, BROOKS, "Acme Bank"), served(2, BROOKS, "Acme GmbH")]
    frame = pd.DataFrame({"Name": ["Thomas Brooks"], "Company": ["Acme"], "Site": ["acme.example"]})
    with scripted(lambda _: result(people)) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
        assert found.people["company_name"].tolist() == ["Acme GmbH"]
        found = frame.outreach.find_people(person_name="Name", domain="Site")
        assert found.accounts["account_status"].tolist() == ["several"]
    with scripted(lambda _: result(people[:1])) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
    assert found.accounts["account_status"].tolist() == ["similar"]
    assert "Thomas Brooks at Acme Bank" in found.accounts["account_detail"].iloc[0]


def test_a_person_is_listed_for_the_first_row_only() -> None:
    """A row of the same name and company, or of the same person only, is a duplicate."""
    frame = pd.DataFrame(
        {
            "Name": ["Thomas Brooks", "BROOKS, Thomas", "Thomas M. Brooks", "Thomas Brooks"],
            "Company": ["Acme", "acme", "Acme", "Acme Inc."],
        },
        index=list("abcd"),
    )
    people = [served(1, BROOKS)]
    with scripted(lambda _: result(people)) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
    assert found.accounts["account_status"].tolist() == ["found", *["duplicate_in_frame"] * 3]
    assert set(found.accounts["account_detail"][1:]) == {"same person as row 'a'"}
    assert len(found.people) == 1
    # Middle names are kept, so only the second row needs no search.
    assert len(service.requests) == 3


def test_only_unidentified_people_are_told_apart() -> None:
    """Two people without ids or URLs are several, in one row and in different rows."""
    people = [{**served(1, BROOKS), "id": None}]
    frame = pd.DataFrame({"Name": ["Thomas Brooks"] * 2, "Company": ["Acme", "Acme Inc."]})
    with scripted(lambda _: result(people)) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
    assert found.accounts["account_status"].tolist() == ["found", "found"]
    assert len(found.people) == 2


def test_a_list_of_attendees_takes_a_request_per_person(sandbox: Sandbox) -> None:
    """Everybody on a list is found, one search each, and what to add is one call."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        people = of.search_people(limit=60)
        listed = pd.DataFrame(
            {
                "Vorname": people["first_name"].str.upper(),
                "Nachname": people["last_name"],
                "Firma": people["company_name"],
                "Ticket": range(60),
            }
        )
        with pytest.warns(OutreachWarning) as caught:
            found = listed.outreach.find_people(person_name=True, account_columns=["Ticket"])
    said = " ".join(str(warning.message) for warning in caught)
    assert "person_name=['Vorname', 'Nachname']" in said
    assert "company_name='Firma'" in said
    assert found.requests == 60
    to_add = found.people.query("account_status == 'found' and name_match == 'equal'")
    assert len(to_add) >= 55
    assert to_add["id"].tolist() == people["id"].iloc[to_add["Ticket"]].tolist()
    assert "matched_seniority" not in found.people
    assert found.people.columns.tolist()[-5:] == [
        *["account_row", "account_rank", "account_status", "name_match", "Ticket"]
    ]
    shown = repr(found)
    assert f"{len(to_add)} of 60 people found in 60 requests" in shown
    assert ".people.query(\"account_status == 'found' and name_match == 'equal'\")" in shown
    summary = found.summary().set_index("account_status")["accounts"]
    assert summary.sum() == 60
    assert summary["found"] == len(to_add)


def test_chosen_columns_read_names_too() -> None:
    """Names are checked also where the chosen columns lack them."""
    found, _ = found_by("Thomas Brooks", [BROOKS], columns=["title"])
    assert found.people.columns.tolist() == [
        *["title", "account_row", "account_rank", "account_status", "name_match"]
    ]
    assert found.people["name_match"].tolist() == ["equal"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"person_name": "Thomas Brooks"}, r"pass filters=\{'person_name': 'Thomas Brooks'\}"),
        ({"person_name": ["Name", "Nam"]}, "'Nam' is not a column"),
        ({"person_name": ["Name"] * 3}, "the two with first and last names"),
        ({"person_name": True, "per_company": 10}, "per_company=10 does not apply"),
        ({"person_name": True, "per_company": None}, "per_company=None does not apply"),
        ({"person_name": True, "split_by": "person_seniorities"}, "split_by=.* does not apply"),
        ({"person_name": "Name", "filters": {"person_name": "A"}}, "Remove person_name from"),
    ],
)
def test_invalid_arguments_are_an_error_before_any_request(
    options: dict[str, Any], words: str
) -> None:
    """A name that is no column, and what does not apply, is an error, and nothing is sent."""
    frame = pd.DataFrame({"Name": ["Thomas Brooks"], "Company": ["Acme"]})
    with scripted([]) as service, connected(service):
        with pytest.raises(InvalidInputError, match=words):
            frame.outreach.find_people(company_name="Company", **options)


def test_names_are_searched_only_on_request() -> None:
    """A list of accounts with the column Name stays one; its name may be a filter."""
    frame = pd.DataFrame({"Name": ["Thomas Brooks"], "Website": ["acme.example"]})
    with scripted(lambda _: result([])) as service, connected(service):
        with pytest.warns(OutreachWarning, match="identified by domain='Website'"):
            frame.outreach.find_people(filters={"person_name": "Ada"})
    assert service.requests[0].json["person_name"] == "Ada"
    without = pd.DataFrame({"Firma": ["Acme"], "Company": ["Acme"], "Person": ["Ada"]})
    with scripted(lambda _: result([])) as service, connected(service):
        with pytest.warns(OutreachWarning, match="company_name='Company'"):
            without.outreach.find_people()
        with pytest.raises(InvalidInputError, match="no single column with a usual name"):
            without.outreach.find_people(person_name=True)


def test_a_failure_keeps_what_was_found() -> None:
    """After a failure `.partial` has the people found, and a repeated call asks for the others."""
    frame = pd.DataFrame({"Name": ["Thomas Brooks", "Ada Lee", "Bo Yu"], "Company": ["Acme"] * 3})
    is_broken = True

    def reply(request: Received) -> Reply:
        name = request.json["person_name"]
        first, last = name.split()
        is_failing = is_broken and name == "Ada Lee"
        return json({}, 400) if is_failing else result([served(len(name), (name, first, last))])

    def search() -> Any:
        return frame.outreach.find_people(person_name="Name", company_name="Company")

    with scripted(reply) as service, connected(service, cache="default", workers=1):
        with pytest.raises(OutreachError) as caught:
            search()
        partial: Any = caught.value.partial
        assert partial.accounts["account_status"].fillna("").tolist() == ["found", "", ""]
        assert "before these rows were finished" in repr(partial)
        is_broken = False
        before = len(service.requests)
        assert search().accounts["account_status"].tolist() == ["found"] * 3
        assert len(service.requests) < before + 3


def test_missing_people_are_explained_once_per_company() -> None:
    """The people of a company are counted once, however many rows name it."""
    frame = pd.DataFrame(
        {"Name": ["Ada Lee", "Bo Yu", "Cy Ma"], "Company": ["Acme", "Acme", "Other"]}
    )
    with scripted(lambda _: result([])) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
        assert ".explain_nobody(), in 2 requests" in repr(found)
        before = len(service.requests)
        explained = found.explain_nobody()
    assert len(service.requests) == before + 2
    assert len(explained) == 3
    assert explained["people_without_filters"].tolist() == [0, 0, 0]


def test_the_shell_finds_the_people_of_a_file(
    sandbox: Sandbox, environment: None, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """find-people takes one or two columns of names, and no number per company."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        people = of.search_people(limit=3)
    path = tmp_path / "attendees.csv"
    people[["first_name", "last_name", "company_name"]].to_csv(path, index=False)
    command = ["find-people", str(path), "--company-name", "company_name"]
    command += ["--person-name", "first_name", "last_name"]
    assert main([*command, "--accounts", str(tmp_path / "out.csv")]) == 0
    assert "3 of 3 people found" in capsys.readouterr().err
    assert pd.read_csv(tmp_path / "out.csv")["account_status"].tolist() == ["found"] * 3
    assert main([*command, "--format", "json"]) == 0
    rows = jsonlib.loads(capsys.readouterr().out)
    shown = [(row["account_row"], row["account_status"], row["name_match"]) for row in rows]
    assert shown == [(number, "found", "equal") for number in range(3)]
    for option in (["--all"], ["--per-company", "10"]):
        assert main([*command, *option]) != 0
        error = f"{' '.join(option)} does not apply to a search by --person-name"
        assert error in capsys.readouterr().err


def test_a_company_without_a_comparable_name_is_similar() -> None:
    """A person without a company's name is not at a listed company whose name has no key."""
    frame = pd.DataFrame({"Name": ["Thomas Brooks"], "Company": ["!!!"]})
    people = [{**served(1, BROOKS), "company": {"id": None, "name": None}}]
    with scripted(lambda _: result(people)) as service, connected(service):
        found = frame.outreach.find_people(person_name="Name", company_name="Company")
    assert found.accounts["account_status"].tolist() == ["similar"]
    assert found.accounts["account_detail"].tolist() == ["similar: Thomas Brooks at ?"]


def test_the_column_of_names_may_have_any_label() -> None:
    """A column's label may be the number 0, which is equal to False."""
    frame = pd.DataFrame([["Thomas Brooks", "Acme"]])
    with scripted(lambda _: result([served(1, BROOKS)])) as service, connected(service):
        found = frame.outreach.find_people(person_name=0, company_name=1)
    assert found.accounts["account_status"].tolist() == ["found"]


def test_a_search_joins_columns_of_an_earlier_search() -> None:
    """Joined columns may have the names of the other search's columns."""
    frame = pd.DataFrame(
        {"Name": ["Thomas Brooks"], "Company": ["Acme"], "name_match": ["similar"]}
    ).assign(matched_seniority="vp")
    with scripted(lambda _: result([served(1, BROOKS)])) as service, connected(service):
        named = frame.outreach.find_people(
            person_name="Name",
            company_name="Company",
            columns=["name"],
            account_columns=["matched_seniority", "name_match"],
        )
        found = frame.outreach.find_people(
            company_name="Company", account_columns=["name_match"], per_company=1
        )
    assert found.people["name_match"].tolist() == ["similar"]
    assert found.accounts["account_company_name"].tolist() == ["Acme"]
    assert named.people.loc[0, ["matched_seniority", "name_match"]].tolist() == ["vp", "equal"]
    assert named.people["account_name_match"].tolist() == ["similar"]
