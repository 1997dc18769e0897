"""`df.outreach`: what can be done with a frame, as methods on it; delegates, nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from outreach_frames import spec
from outreach_frames.accounts.find_people import find_people as find_account_people
from outreach_frames.accounts.matching import MatchKey
from outreach_frames.accounts.matching import match as match_frames
from outreach_frames.accounts.matching import without as frame_without
from outreach_frames.accounts.result import AccountPeople
from outreach_frames.client.client import Client
from outreach_frames.common.arguments import Headcount
from outreach_frames.files.csv_file import Separator, write_csv
from outreach_frames.files.excel import write_excel
from outreach_frames.files.parquet import write_parquet
from outreach_frames.leads.plan import SubmissionPlan, make_plan
from outreach_frames.leads.plan import validate as validate_frame
from outreach_frames.leads.planning.names import EMAIL_COLUMN, PROFNET_URL_COLUMN
from outreach_frames.leads.sending.report import SubmissionReport
from outreach_frames.leads.sending.submit import submit
from outreach_frames.tables import child_tables
from outreach_frames.tables import companies as company_tables
from outreach_frames.tables.brief import brief as brief_frame
from outreach_frames.tables.flatten import DtypeBackend
from outreach_frames.tables.segments import segments as segment_table
from outreach_frames.tables.unlist import unlist as unlist_frame

LeadsDistribution = Literal["sequence_senders", "custom_mailboxes"]


class OutreachAccessor:
    """What the toolkit can do with a frame; the frame itself is never changed.

    Examples
    --------
    >>> import outreach_frames as of
    >>> with of.connect("sandbox", cache=None):
    ...     people = of.search_people(limit=20)
    >>> people.outreach.headcount().shape[1]
    5
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def plan(
        self,
        sequence_id: str,
        *,
        email: Hashable | None = EMAIL_COLUMN,
        profnet_url: Hashable | None = PROFNET_URL_COLUMN,
        data: Sequence[str] | Mapping[str, Hashable] | None = None,
        overrides: bool | Mapping[str, bool | str] | str | None = None,
        leads_distribution: LeadsDistribution | None = None,
        mailboxes: Sequence[str] | None = None,
        chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
        client: Client | None = None,
    ) -> SubmissionPlan:
        return make_plan(
            self._frame,
            sequence_id,
            email=email,
            profnet_url=profnet_url,
            data=data,
            overrides=overrides,
            leads_distribution=leads_distribution,
            mailboxes=mailboxes,
            chunk_size=chunk_size,
            client=client,
        )

    def validate(
        self,
        *,
        email: Hashable | None = EMAIL_COLUMN,
        profnet_url: Hashable | None = PROFNET_URL_COLUMN,
        data: Sequence[str] | Mapping[str, Hashable] | None = None,
        overrides: bool | Mapping[str, bool | str] | str | None = None,
        leads_distribution: LeadsDistribution | None = None,
        mailboxes: Sequence[str] | None = None,
        chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
    ) -> pd.DataFrame:
        return validate_frame(
            self._frame,
            email=email,
            profnet_url=profnet_url,
            data=data,
            overrides=overrides,
            leads_distribution=leads_distribution,
            mailboxes=mailboxes,
            chunk_size=chunk_size,
        )

    def add_to_sequence(
        self,
        sequence_id: str,
        *,
        email: Hashable | None = EMAIL_COLUMN,
        profnet_url: Hashable | None = PROFNET_URL_COLUMN,
        data: Sequence[str] | Mapping[str, Hashable] | None = None,
        overrides: bool | Mapping[str, bool | str] | str | None = None,
        leads_distribution: LeadsDistribution | None = None,
        mailboxes: Sequence[str] | None = None,
        chunk_size: int = spec.MAX_LEADS_PER_REQUEST,
        journal: str | Path | None = None,
        progress: bool | None = None,
        dry_run: bool = False,
        client: Client | None = None,
    ) -> SubmissionReport:
        """Add the frame's good rows to a sequence, and say of every row what became of it.

        Rows are checked and duplicates found before the first request; chunks of at most 250 are
        sent one after the other. It raises only before the first request; afterwards the report
        tells everything, also when the run stopped early (`.error`).

        Parameters
        ----------
        sequence_id : str
            The sequence's id, from `sequences()`.
        email, profnet_url : str or None
            The columns that identify a lead; the default ones may be absent.
        data : list of str or dict of str to str, optional
            Columns to send as the lead's data fields, as names or as {field name: column}.
        overrides : bool, dict or str, optional
            Checks of the service to skip, for all rows or by column.
        leads_distribution : str, optional
            sequence_senders or custom_mailboxes.
        mailboxes : iterable of str, optional
            Mailbox addresses, with custom_mailboxes.
        chunk_size : int
            Leads per request, 250 at most.
        journal : str or Path, optional
            A file that remembers what was sent; the same call goes on where it stopped.
        progress : bool, optional
            Show a progress bar; by default in a notebook or terminal, when it takes a while.
        dry_run : bool
            Check and report, and send nothing.
        client : Client, optional
            By default the one of the last `connect`.

        Returns
        -------
        SubmissionReport
            `.rows`, `.frame`, `.summary()`, `.notes`, `.error`, `.to_csv(folder)`,
            `.retry_unknown()`.

        Raises
        ------
        InvalidInputError
            An argument or the journal cannot be used; nothing was sent.

        Notes
        -----
        Interface: POST /sequences/{id}/leads.

        Examples
        --------
        >>> import outreach_frames as of
        >>> leads = pd.DataFrame({"email": ["ada@brightforge.example", "n/a"]})
        >>> with of.connect("sandbox", cache=None) as client:
        ...     sequence = client.sandbox.sequence_ids["accepts_any"]
        ...     report = leads.outreach.add_to_sequence(sequence)
        >>> report.rows["status"].tolist()
        ['added', 'invalid']
        """
        plan = self.plan(
            sequence_id,
            email=email,
            profnet_url=profnet_url,
            data=data,
            overrides=overrides,
            leads_distribution=leads_distribution,
            mailboxes=mailboxes,
            chunk_size=chunk_size,
            client=client,
        )
        return submit(plan, journal=journal, progress=progress, dry_run=dry_run)

    def to_csv(
        self,
        path: str | Path,
        *,
        formulas: Literal["escape", "keep"] = "escape",
        excel: bool = False,
        sep: Separator = ",",
        index: bool | None = None,
    ) -> Path:
        return write_csv(self._frame, path, formulas=formulas, excel=excel, sep=sep, index=index)

    def to_excel(self, path: str | Path, *, index: bool | None = None, tz: str = "UTC") -> Path:
        return write_excel(self._frame, path, index=index, tz=tz)

    def to_parquet(self, path: str | Path, *, attrs: bool = True) -> Path:
        return write_parquet(self._frame, path, attrs=attrs)

    def unlist(self, sep: str = "; ") -> pd.DataFrame:
        return unlist_frame(self._frame, sep)

    def brief(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        return brief_frame(self._frame, columns)

    def companies(self) -> pd.DataFrame:
        return company_tables.companies(self._frame)

    def headcount(self, level: company_tables.Level = "department") -> pd.DataFrame:
        return company_tables.headcount(self._frame, level)

    def segments(
        self, by: str | Sequence[str], *, min_people: int = 1, dropna: bool = False
    ) -> pd.DataFrame:
        return segment_table(self._frame, by, min_people=min_people, dropna=dropna)

    def experiences(self) -> pd.DataFrame:
        return child_tables.experiences(self._frame)

    def educations(self) -> pd.DataFrame:
        return child_tables.educations(self._frame)

    def languages(self) -> pd.DataFrame:
        return child_tables.languages(self._frame)

    def technologies(self) -> pd.DataFrame:
        return child_tables.technologies(self._frame)

    def locations(self) -> pd.DataFrame:
        return child_tables.locations(self._frame)

    def keywords(self) -> pd.DataFrame:
        return child_tables.keywords(self._frame)

    def sic_codes(self) -> pd.DataFrame:
        return child_tables.sic_codes(self._frame)

    def naics_codes(self) -> pd.DataFrame:
        return child_tables.naics_codes(self._frame)

    def phone_numbers(self) -> pd.DataFrame:
        return child_tables.phone_numbers(self._frame)

    def recent_activity(self) -> pd.DataFrame:
        return child_tables.recent_activity(self._frame)

    def find_people(
        self,
        filters: Mapping[str, Any] | None = None,
        *,
        domain: Hashable | None = None,
        company_id: Hashable | None = None,
        company_profnet_url: Hashable | None = None,
        name: Hashable | None = None,
        per_company: int | None = 10,
        split_by: str | None = None,
        headcount: Headcount = "all",
        dtype_backend: DtypeBackend = "numpy_nullable",
        refresh: bool = False,
        progress: bool | None = None,
        client: Client | None = None,
        **fields: Any,
    ) -> AccountPeople:
        return find_account_people(
            self._frame,
            filters,
            domain=domain,
            company_id=company_id,
            company_profnet_url=company_profnet_url,
            name=name,
            per_company=per_company,
            split_by=split_by,
            headcount=headcount,
            dtype_backend=dtype_backend,
            refresh=refresh,
            progress=progress,
            client=client,
            **fields,
        )

    def match(
        self,
        other: pd.DataFrame,
        *,
        email: MatchKey | None = None,
        profnet_url: MatchKey | None = None,
        domain: MatchKey | None = None,
    ) -> pd.DataFrame:
        return match_frames(self._frame, other, email=email, profnet_url=profnet_url, domain=domain)

    def without(
        self,
        *others: pd.DataFrame,
        email: MatchKey | None = None,
        profnet_url: MatchKey | None = None,
        domain: MatchKey | None = None,
    ) -> pd.DataFrame:
        return frame_without(
            self._frame, *others, email=email, profnet_url=profnet_url, domain=domain
        )

    find_people.__doc__ = find_account_people.__doc__
    match.__doc__ = match_frames.__doc__
    without.__doc__ = frame_without.__doc__
    plan.__doc__ = make_plan.__doc__
    validate.__doc__ = validate_frame.__doc__
    to_csv.__doc__ = write_csv.__doc__
    to_excel.__doc__ = write_excel.__doc__
    to_parquet.__doc__ = write_parquet.__doc__
    unlist.__doc__ = unlist_frame.__doc__
    brief.__doc__ = brief_frame.__doc__
    companies.__doc__ = company_tables.companies.__doc__
    headcount.__doc__ = company_tables.headcount.__doc__
    segments.__doc__ = segment_table.__doc__
    experiences.__doc__ = child_tables.experiences.__doc__
    educations.__doc__ = child_tables.educations.__doc__
    languages.__doc__ = child_tables.languages.__doc__
    technologies.__doc__ = child_tables.technologies.__doc__
    locations.__doc__ = child_tables.locations.__doc__
    keywords.__doc__ = child_tables.keywords.__doc__
    sic_codes.__doc__ = child_tables.sic_codes.__doc__
    naics_codes.__doc__ = child_tables.naics_codes.__doc__
    phone_numbers.__doc__ = child_tables.phone_numbers.__doc__
    recent_activity.__doc__ = child_tables.recent_activity.__doc__
