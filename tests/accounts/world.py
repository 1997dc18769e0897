"""A simulated service with invented companies, which is searched company by company."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.resources.search_service import result
from tests.scripted import Received, Reply

SENIORITIES = ["c_suite", "vp", "director"]
FILTERS = {
    "company_ids": "id",
    "company_domains": "domain",
    "company_names": "name",
    "company_profnet_urls": "profnet_url",
}


@dataclass(frozen=True)
class Firm:
    """A company: its number, its domain and name, and the seniorities of its people, in order.

    `found_by` has further domains that find its people, such as the domain of a parent.
    """

    number: int
    domain: str
    name: str
    seniorities: Sequence[str] = ()
    found_by: Sequence[str] = ()

    @property
    def id(self) -> str:
        """Return the company's id."""
        return str(uuid.UUID(int=self.number))

    @property
    def profnet_url(self) -> str:
        """Return the company's profile URL."""
        return f"https://profnet.example/company/{self.number}"

    def is_meant(self, filters: Mapping[str, Any]) -> bool:
        """Return whether a search's filters name this company."""
        for name, attribute in FILTERS.items():
            known = [getattr(self, attribute), *(self.found_by if attribute == "domain" else ())]
            if name in filters and not set(known) & set(filters[name]):
                return False
        return True

    def resource(self) -> dict[str, Any]:
        """Return the company's fields for a person."""
        site = f"https://www.{self.domain}/" if self.domain else None
        return {"id": self.id, "name": self.name, "website": site, "profnet_url": self.profnet_url}


@dataclass
class World:
    """The companies, and the order in which a search returns their people."""

    firms: Sequence[Firm]
    shuffle: Callable[[list[Any]], None] = lambda people: None
    people: list[tuple[Firm, dict[str, Any]]] = field(init=False)
    _found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        people = [(firm, seniority) for firm in self.firms for seniority in firm.seniorities]
        self.shuffle(people)
        self.people = [
            (
                firm,
                {
                    "id": str(uuid.UUID(int=number)),
                    "title": seniority,
                    "company": firm.resource(),
                },
            )
            for number, (firm, seniority) in enumerate(people)
        ]

    def search(self, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all matching people in the service's order."""
        key = repr([(name, filters[name]) for name in sorted(filters) if "page" not in name])
        if key not in self._found:
            meant = {firm.number for firm in self.firms if firm.is_meant(filters)}
            wanted = filters.get("person_seniorities", [""])
            self._found[key] = [
                person
                for firm, person in self.people
                if firm.number in meant and any(value in person["title"] for value in wanted)
            ]
        return self._found[key]

    def reply(self, request: Received) -> Reply:
        """Return the response to a people search."""
        found = self.search(request.json)
        size, page = request.json["page_size"], request.json["page"]
        told = {"page": page, "page_size": size, "total": len(found)}
        told["total_pages"] = -(-len(found) // size)
        return result(found[(page - 1) * size : page * size], **told)


def world_of(sizes: Mapping[str, int]) -> World:
    """Make companies of these sizes and shuffle their people."""
    firms = [
        Firm(number, domain, f"Firm {number}", [SENIORITIES[place % 3] for place in range(size)])
        for number, (domain, size) in enumerate(sizes.items(), 1)
    ]
    return World(firms, random.Random(3).shuffle)
