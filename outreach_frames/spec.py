"""The service's interface as data: the only place for its names, types and limits.

Where the interface document lists no values, the values here are suggestions, and other values are
never rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

JsonType = Literal["string", "integer", "number", "boolean", "object", "array"]
Format = Literal["", "date", "date-time", "uuid", "uri", "email", "domain"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a resource."""

    name: str
    type: JsonType = "string"
    format: Format = ""
    nullable: bool = False
    required: bool = False
    note: str = ""
    constant: str = ""
    values: tuple[str, ...] = ()
    members: tuple[Field, ...] = ()  # the fields of an object, or of an array's objects
    items: JsonType | None = None  # the type of an array's elements; None: not documented
    minimum: int | None = None
    maximum: int | None = None  # the largest number, or the largest length of an array
    default: int | str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter of people search."""

    name: str
    group: str
    type: JsonType = "array"
    format: Format = ""
    note: str = ""
    excludes: str = ""  # the opposite filter, if this filter excludes values
    suggestions: tuple[str, ...] = ()  # some of the allowed values
    example: str = ""  # a value, if there are no suggestions


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the service."""

    name: str
    method: Literal["GET", "POST", "PATCH"]
    path: str
    note: str
    query: tuple[Field, ...] = ()
    body: tuple[Field | Filter, ...] = ()
    result: tuple[Field, ...] = ()  # the fields of a successful response
    refusals: tuple[int, ...] = ()  # documented error statuses
    identifies: str = ""  # the object that the path's parameter identifies

    @property
    def label(self) -> str:
        """Return the method and path, as in the interface document."""
        return f"{self.method} {self.path}"

    @property
    def listed(self) -> Field:
        """Return the response's field that holds the items."""
        return next(field for field in self.result if field.type == "array")


def _object_constant(value: str) -> Field:
    return Field("object", constant=value, note=f"constant {value}")


JOB_FUNCTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        department: tuple(functions.split())
        for department, functions in {
            "finance": """
                accounting finance financial_planning_analysis financial_reporting financial_risk
                financial_strategy financial_systems internal_audit_control investor_relations
                mergers_acquisitions real_estate_finance shared_services sourcing_procurement tax
                treasury
            """,
            "legal": """
                acquisitions compliance contracts corporate_secretary ediscovery ethics governance
                governmental_affairs_regulatory_law intellectual_property_patent labor_employment
                lawyer_attorney legal legal_counsel legal_operations litigation privacy
            """,
            "revenue": """
                account_management business_development channel_sales
                customer_retention_development customer_success field_outside_sales inside_sales
                partnerships revenue_operations sales sales_enablement sales_engineering
                sales_operations sales_training
            """,
            "engineering_technical": """
                artificial_intelligence_machine_learning bioengineering_biometrics
                business_intelligence chemical_engineering cloud_mobility data_science devops
                digital_transformation emerging_technology_innovation engineering_technical
                industrial_engineering mechanic mobile_development project_management
                research_development scrum_master_agile_coach software_development
                support_technical_services technician technology_operations test_quality_assurance
                ui_ux web_development
            """,
            "operations": """
                call_center construction corporate_strategy customer_service_support
                enterprise_resource_planning facilities_management leasing logistics
                office_operations operations physical_security project_development
                quality_management real_estate safety store_operations supply_chain
            """,
            "senior_leadership": """
                executive finance_executive founder human_resources_executive
                information_technology_executive legal_executive marketing_executive
                medical_health_executive operations_executive sales_executive
            """,
            "medical_health": """
                anesthesiology chiropractics clinical_systems dentistry dermatology
                doctors_physicians epidemiology first_responder medical_administration
                medical_education_training medical_research medicine neurology nursing
                nutrition_dietetics obstetrics_gynecology oncology ophthalmology optometry
                orthopedics pathology pediatrics pharmacy physical_therapy psychiatry psychology
                public_health radiology social_work
            """,
            "information_technology": """
                application_development business_service_management_itsm collaboration_web_app
                data_center data_warehouse database_administration ecommerce_development
                enterprise_architecture help_desk_desktop_services hr_financial_erp_systems
                information_security information_technology infrastructure it_asset_management
                it_audit_it_compliance it_operations it_procurement it_strategy it_training
                networking project_program_management quality_assurance retail_store_systems
                servers storage_disaster_recovery telecommunications virtualization
            """,
            "education": "principal professor superintendent teacher",
            "marketing": """
                advertising brand_management content_marketing customer_experience
                customer_marketing demand_generation digital_marketing ecommerce_marketing
                event_marketing field_marketing lead_generation marketing
                marketing_analytics_insights marketing_communications marketing_operations
                product_marketing public_relations search_engine_optimization_pay_per_click
                social_media_marketing strategic_communications technical_marketing
            """,
            "consulting": "consultant",
            "human_resources": """
                compensation_benefits culture_diversity_inclusion employee_labor_relations
                health_safety hr_business_partner human_resource_information_system human_resources
                learning_development organizational_development people_operations
                recruiting_talent_acquisition talent_management workforce_management
            """,
            "design": "graphic_visual_brand_design product_or_ui_ux_design",
            "product": "product_development product_management",
        }.items()
    }
)

DEPARTMENTS: Final = tuple(sorted(JOB_FUNCTIONS))

# Limits of the interface.
MAX_LEADS_PER_REQUEST: Final = 250
MAX_DATA_FIELDS: Final = 50
MAX_DATA_NAME_LENGTH: Final = 255
MAX_DATA_VALUE_LENGTH: Final = 1024
DATA_NAME_PATTERN: Final = r"[a-z][a-z0-9_]*"
MAX_CONTACT_IDS: Final = 20
MAX_MAILBOX_PAGE_SIZE: Final = 20
MIN_SEARCH_PAGE_SIZE: Final = 1
MAX_SEARCH_PAGE_SIZE: Final = 100
DEFAULT_SEARCH_PAGE_SIZE: Final = 5

# Names of properties in responses.
SEQUENCES_KEY: Final = "sequences"
CONTACTS_KEY: Final = "contacts"
MAILBOXES_KEY: Final = "mailboxes"
LEADS_KEY: Final = "leads"
RESULTS_KEY: Final = "results"
PAGINATION_KEY: Final = "_pagination"
LINKS_KEY: Final = "_links"
ERRORS_KEY: Final = "_errors"
VALIDATION_ERRORS_KEY: Final = "validation_errors"

LINK: Final = (Field("href", note="relative path with query string, usable directly in a GET"),)

PAGE_LINKS: Final = (
    Field("self", "object", members=LINK),
    Field("next", "object", members=LINK),
    Field("prev", "object", members=LINK),
)

# Sequence statuses; True if leads can be added to a sequence of this status.
SEQUENCE_STATUSES: Final[Mapping[str, bool]] = MappingProxyType(
    {
        "active": True,
        "paused": True,
        "draft": False,
        "archived": False,
        "archiving": False,
        "pausing": False,
        "resuming": False,
    }
)

SEQUENCE: Final = (
    Field("id", note="sequence id"),
    Field("name", note="sequence name"),
    Field("status", values=tuple(SEQUENCE_STATUSES), note="one of the sequence states"),
    Field("created_at", format="date-time", note="creation time"),
    Field("updated_at", format="date-time", note="last update time"),
    Field("created_by_user_id", note="id of the creating user"),
    Field("created_by_user_email", note="email of the creating user"),
    Field(
        "_links",
        "array",
        items="object",
        members=LINK,
        note="related links; items in list responses may omit them",
    ),
)

OVERRIDES: Final = (
    Field("ignore_recently_contacted", "boolean", note="skips the recently-contacted check"),
    Field("ignore_exclusion_list", "boolean", note="skips the exclusion-list check"),
    Field(
        "ignore_duplicate_leads_in_other_draft_sequences",
        "boolean",
        note="skips the check against other draft sequences",
    ),
    Field(
        "ignore_duplicate_leads_in_other_active_sequences",
        "boolean",
        note="skips the check against other active or paused sequences",
    ),
)

OVERRIDE_NAMES: Final = tuple(field.name for field in OVERRIDES)

LEAD_IDENTIFIERS: Final = ("email", "profnet_url")

LEAD: Final = (
    Field("email", nullable=True, note="at least one identifier is required"),
    Field("profnet_url", nullable=True, note="at least one identifier is required"),
    Field("data", "object", note="map of string field names to string values"),
    Field("overrides", "object", members=OVERRIDES, note="each defaults to false"),
)

LEAD_REFERENCE: Final = LEAD[:2]

LEADS_DISTRIBUTIONS: Final = ("sequence_senders", "custom_mailboxes")
DEFAULT_LEADS_DISTRIBUTION: Final = LEADS_DISTRIBUTIONS[0]
MAILBOXES_LEADS_DISTRIBUTION: Final = LEADS_DISTRIBUTIONS[1]

ADD_LEADS_SETTINGS: Final = (
    Field("leads_distribution", values=LEADS_DISTRIBUTIONS, default=DEFAULT_LEADS_DISTRIBUTION),
    Field("mailboxes", "array", items="string", format="email"),
)

ADD_LEADS_BODY: Final = (
    Field(
        "leads",
        "array",
        items="object",
        members=LEAD,
        required=True,
        maximum=MAX_LEADS_PER_REQUEST,
    ),
    Field("settings", "object", members=ADD_LEADS_SETTINGS),
)

SKIPPED_SUFFIX: Final = "_and_skipped"

# Lists of skipped leads, and the override that disables the check for each.
CHECK_OVERRIDES: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{status}{SKIPPED_SUFFIX}": override
        for status, override in (
            ("in_exclusion_list", "ignore_exclusion_list"),
            ("recently_contacted", "ignore_recently_contacted"),
            ("in_other_draft_sequences", "ignore_duplicate_leads_in_other_draft_sequences"),
            ("in_other_active_sequences", "ignore_duplicate_leads_in_other_active_sequences"),
        )
    }
)

ADD_LEADS_RESULT: Final = (
    Field("total", "integer", note="number of lead objects in the request"),
    Field("total_added_to_sequence", "integer", note="number of leads added"),
    Field(
        "duplicate_emails",
        "array",
        items="string",
        note="emails that appeared more than once in the request; those leads are skipped",
    ),
    Field(
        "duplicate_profnet_urls",
        "array",
        items="string",
        note="profile URLs that appeared more than once in the request; those leads are skipped",
    ),
    *(
        Field(
            f"{status}{SKIPPED_SUFFIX}", "array", items="object", members=LEAD_REFERENCE, note=why
        )
        for status, why in (
            ("in_exclusion_list", "leads in the account exclusion list"),
            ("recently_contacted", "leads recently contacted by the account"),
            ("already_in_sequence", "leads already in this sequence with the same contact fields"),
            ("in_other_draft_sequences", "leads present in other draft sequences"),
            ("in_other_active_sequences", "leads present in other active sequences"),
        )
    ),
)

# The interface document has two names for the list of duplicate profile URLs; accept both.
DUPLICATE_URLS_PATTERN: Final = r"duplicate_[a-z0-9_]+_urls"

PHONE_NUMBER: Final = (
    Field("id", format="uuid", note="id of the phone number"),
    _object_constant("phone_number"),
    Field("number", note="the number itself"),
    Field("type", note="type of number; the values are not documented"),
    Field("source", note="source of the number; the values are not documented"),
    Field("kind", note="kind of number; the values are not documented"),
)

ACTIVITY: Final = (
    Field("event_at", format="date-time", note="time of the event"),
    Field("event_type", note="type of event; the values are not documented"),
    Field("sequence_type", note="type of the sequence; the values are not documented"),
    Field("sequence_name", note="name of the sequence"),
)

CONTACT: Final = (
    Field("id", format="uuid", required=True, note="id of the contact"),
    Field("email", nullable=True, required=True, note="email address"),
    Field("name", nullable=True, note="full name"),
    Field("first_name", nullable=True, note="first name"),
    Field("last_name", nullable=True, note="last name"),
    Field("profnet_url", format="uri", nullable=True, note="profile URL"),
    Field("title", nullable=True, note="job title"),
    Field("location", nullable=True, note="place as text"),
    Field("time_zone", nullable=True, note="time zone"),
    Field("company_name", nullable=True, note="name of the employer"),
    Field("company_domain", nullable=True, note="web domain of the employer"),
    Field("owner", nullable=True, note="user who owns the contact"),
    Field(
        "last_contacted_at",
        format="date-time",
        nullable=True,
        note="time when the contact was last contacted",
    ),
    Field("phone_numbers", "array", items="object", members=PHONE_NUMBER, note="all phone numbers"),
    Field(
        "recent_activity",
        "array",
        items="object",
        members=ACTIVITY,
        note="events, newest first; only for contacts read by email address",
    ),
)

EXPERIENCE: Final = (
    _object_constant("experience"),
    Field("title", note="job title"),
    Field("company_name", note="name of the employer"),
    Field("company_profnet_url", note="profile URL of the employer"),
    Field("start_date", format="date", note="first day of the position"),
    Field(
        "end_date",
        format="date",
        nullable=True,
        note="last day of the position; missing if it is current",
    ),
)

EDUCATION: Final = (
    _object_constant("education"),
    Field("degree", note="degree"),
    Field("field_of_study", note="field of study"),
    Field("school_name", note="name of the school"),
    Field("school_profnet_url", note="profile URL of the school"),
    Field("start_date", format="date", note="first day"),
    Field("end_date", format="date", note="last day"),
)

LANGUAGE: Final = (
    _object_constant("language"),
    Field("language", note="name of the language"),
    Field("iso_code", note="three-letter code of the language"),
    Field("proficiency", nullable=True, note="proficiency in the language"),
)

PERSON_LOCATION: Final = (
    Field("city", note="city"),
    Field("state", note="state or region"),
    Field("country", note="country"),
    Field("lat", "number", note="latitude in degrees"),
    Field("long", "number", note="longitude in degrees"),
)

COMPANY_LOCATION: Final = (
    *PERSON_LOCATION[:3],
    Field("postal_code", note="postal code"),
    *PERSON_LOCATION[3:],
)

DEPARTMENT_HEADCOUNT: Final = tuple(
    Field(department, "integer", note=f"employees in {department.replace('_', ' ')}")
    for department in DEPARTMENTS
)

JOB_FUNCTION_HEADCOUNT: Final = tuple(
    Field(
        department,
        "object",
        members=tuple(
            Field(
                function,
                "integer",
                note=f"employees in {department}, {function}".replace("_", " "),
            )
            for function in functions
        ),
    )
    for department, functions in JOB_FUNCTIONS.items()
)

COMPANY: Final = (
    Field("id", format="uuid", note="id of the company"),
    _object_constant("company"),
    Field("name", note="name of the company"),
    Field("website", note="web address"),
    Field("profnet_url", note="profile URL of the company"),
    Field("industry", note="industry"),
    Field("logo_url", note="URL of the logo"),
    Field("location", note="place as text"),
    Field("overview", note="the company's description of itself"),
    Field("keywords", "array", items="string", note="keywords for the company's business"),
    Field("estimated_number_of_employees", "integer", note="estimated number of employees"),
    Field("size", note="range of the number of employees, as a label"),
    Field("location_details", "object", members=COMPANY_LOCATION),
    Field("locations", "array", note="all locations; the elements are not documented"),
    Field("followers", "integer", note="number of followers of the profile"),
    Field("founded_year", "integer", note="year of foundation"),
    Field("traffic_rank", "integer", note="rank of the website by visits"),
    Field("sic_codes", "array", items="integer", note="SIC codes of the industry"),
    Field("naics_codes", "array", items="integer", note="NAICS codes of the industry"),
    Field("type", note="type of company, as a label"),
    Field("total_funding", "number", note="all funding so far; the currency is not documented"),
    Field("latest_funding_stage", note="stage of the latest funding"),
    Field("latest_funding_date", format="date", note="date of the latest funding"),
    Field("is_b2b", "boolean", note="whether the company sells to businesses"),
    Field("is_b2c", "boolean", note="whether the company sells to consumers"),
    Field("technologies", "array", note="technologies in use; the elements are not documented"),
    Field("department_headcount", "object", members=DEPARTMENT_HEADCOUNT),
    Field("job_function_headcount", "object", members=JOB_FUNCTION_HEADCOUNT),
    Field("estimated_revenue", note="range of revenue, as a label"),
)

PERSON: Final = (
    Field("id", format="uuid", note="id of the person"),
    _object_constant("person"),
    Field("name", note="full name"),
    Field("first_name", note="first name"),
    Field("last_name", note="last name"),
    Field("profnet_url", note="profile URL"),
    Field("title", note="job title"),
    Field("headline", note="headline of the profile"),
    Field("about", nullable=True, note="the person's description of themselves"),
    Field("current_position_start_date", format="date", note="first day of the current position"),
    Field(
        "current_position_description", nullable=True, note="description of the current position"
    ),
    Field("image_url", note="URL of the picture"),
    Field("location", note="place as text"),
    Field("location_details", "object", members=PERSON_LOCATION),
    Field("experiences", "array", items="object", members=EXPERIENCE, note="all positions held"),
    Field("educations", "array", items="object", members=EDUCATION, note="all educations"),
    Field("languages", "array", items="object", members=LANGUAGE, note="all languages spoken"),
    Field("company", "object", members=COMPANY),
    Field("gender", note="gender"),
)

PAGINATION: Final = (
    Field("page", "integer"),
    Field("page_size", "integer"),
    Field("total_pages", "integer"),
    Field("total", "integer"),
)

PEOPLE_SEARCH_RESULT: Final = (
    Field("object", constant="person_search_result", required=True),
    Field("results", "array", items="object", members=PERSON, required=True),
    Field("_pagination", "object", members=PAGINATION, required=True),
    Field("_errors", "array", note="the elements are not documented"),
)

LEAD_LIST_STATUSES: Final = ("queued", "processing", "completed")
LEAD_LIST_TYPES: Final = (
    "profnet",
    "email",
    "title_and_company",
    "name_and_company",
    "crm_a",
    "crm_b",
    "person",
    "adaptive",
)

LEAD_LIST_OPTIONS: Final = (
    Field("reveal_phone_numbers", "boolean"),
    Field("validate_email", "boolean"),
    Field("enrich", "boolean"),
)

LEAD_LIST: Final = (
    Field("id", format="uuid", required=True),
    Field("object", constant="lead_list", required=True, note="constant lead_list"),
    Field("name", required=True),
    Field("status", required=True, values=LEAD_LIST_STATUSES),
    Field("shared", "boolean", required=True),
    Field("visible", "boolean", required=True),
    Field("owner", format="email", required=True),
    Field("type", required=True, values=LEAD_LIST_TYPES),
    Field("leads", "array", items="object", required=True, note="the elements are not documented"),
    Field("created_at", format="date-time"),
    Field("updated_at", format="date-time"),
    Field("options", "object", members=LEAD_LIST_OPTIONS),
    Field("_links", "object", members=PAGE_LINKS[:1]),
    Field("_errors", "array", items="object", note="the elements are not documented"),
)

MAILBOX_STATUSES: Final = ("active", "inactive", "needs_reconnection")
ACTIVE_MAILBOX_STATUS: Final = MAILBOX_STATUSES[0]
EMAIL_PROVIDERS: Final = ("google", "outlook", "other", "other_mixed")

MAILBOX_USER: Final = (
    Field("id", note="id of the user"),
    Field("name", note="name of the user"),
    Field("email", note="email address of the user"),
)

MAILBOX: Final = (
    Field("id", note="id of the mailbox"),
    Field("email", note="sender address"),
    Field("email_provider", values=EMAIL_PROVIDERS, note="provider of the mailbox"),
    Field("daily_email_limit", "integer", note="maximum number of emails per day"),
    Field("status", values=MAILBOX_STATUSES, note="whether the mailbox can send"),
    Field("user", "object", members=MAILBOX_USER),
    Field("created_at", format="date-time", note="creation time"),
    Field("updated_at", format="date-time", note="last update time"),
    Field("_links", "object", members=PAGE_LINKS[:1]),
)

DAILY_EMAIL_LIMIT_BODY: Final = (
    Field("daily_email_limit", "integer", required=True, note="the new daily limit"),
)

# Suggestions for undocumented lists; the service may accept other values.
SUGGESTED_SENIORITIES: Final = (
    "owner",
    "founder",
    "c_suite",
    "vp",
    "head",
    "director",
    "manager",
    "senior",
    "entry",
    "intern",
)
SUGGESTED_COMPANY_SIZES: Final = (
    "1-10",
    "11-50",
    "51-200",
    "201-500",
    "501-1000",
    "1001-5000",
    "5001-10000",
    "10001+",
)
SUGGESTED_COMPANY_TYPES: Final = (
    "privately_held",
    "public_company",
    "nonprofit",
    "partnership",
    "government_agency",
    "educational_institution",
    "self_owned",
)
SUGGESTED_COMPANY_FOCUSES: Final = ("b2b", "b2c")
SUGGESTED_JOB_FUNCTIONS: Final = tuple(
    dict.fromkeys(function for functions in JOB_FUNCTIONS.values() for function in functions)
)

ALL_NETWORKS: Final = "all_networks"

FILTER_GROUPS: Final = ("person", "company", "location", "education", "networks and investors")
_PERSON, _COMPANY, _LOCATION, _EDUCATION, _NETWORKS = FILTER_GROUPS

# The interface document's words.
_DEPARTMENTS, _FUNCTIONS, _INDUSTRIES = (
    f"From the supported {values} list" for values in ("departments", "job functions", "industries")
)
_ID: Final = "3f2b8c1e-5d47-4a6e-9b0d-7c1a2e4f6b80"

FILTERS: Final = (
    Filter("person_name", _PERSON, "string", example="Tânia Costa"),
    Filter("person_titles", _PERSON, example="Head of Sales"),
    Filter("person_title_exact_match", _PERSON, "boolean"),
    Filter("person_seniorities", _PERSON, suggestions=SUGGESTED_SENIORITIES),
    Filter("person_departments", _PERSON, note=_DEPARTMENTS, suggestions=DEPARTMENTS),
    Filter("person_job_functions", _PERSON, note=_FUNCTIONS, suggestions=SUGGESTED_JOB_FUNCTIONS),
    Filter("person_locations", _LOCATION, example="Germany"),
    Filter("person_exclude_locations", _LOCATION, excludes="person_locations"),
    Filter("company_locations", _LOCATION, example="Germany"),
    Filter("company_exclude_locations", _LOCATION, excludes="company_locations"),
    Filter("company_names", _COMPANY, example="Brightforge"),
    Filter("company_exclude_names", _COMPANY, excludes="company_names"),
    Filter("company_ids", _COMPANY, format="uuid", example=_ID),
    Filter("company_exclude_ids", _COMPANY, format="uuid", excludes="company_ids"),
    Filter("education_company_ids", _EDUCATION, format="uuid", example=_ID),
    Filter("education_company_names", _EDUCATION, example="University"),
    Filter("company_domains", _COMPANY, format="domain", example="brightforge.example"),
    Filter("company_exclude_domains", _COMPANY, format="domain", excludes="company_domains"),
    Filter("company_profnet_urls", _COMPANY, example="https://profnet.example/company/example"),
    Filter("company_exclude_profnet_urls", _COMPANY, excludes="company_profnet_urls"),
    Filter("company_domains_match_subsidiaries_and_affiliates", _COMPANY, "boolean"),
    Filter("company_focuses", _COMPANY, suggestions=SUGGESTED_COMPANY_FOCUSES),
    Filter("company_types", _COMPANY, suggestions=SUGGESTED_COMPANY_TYPES),
    Filter("company_sizes", _COMPANY, suggestions=SUGGESTED_COMPANY_SIZES),
    Filter("company_industries", _COMPANY, note=_INDUSTRIES, example="Software Development"),
    Filter("company_exclude_industries", _COMPANY, note=_INDUSTRIES, excludes="company_industries"),
    Filter(
        "profnet_networks",
        _NETWORKS,
        suggestions=(ALL_NETWORKS,),
        note="User email addresses whose network connections filter the results. The special "
        "string all_networks includes every network of the account's users",
    ),
    Filter(
        "exclude_profnet_networks",
        _NETWORKS,
        excludes="profnet_networks",
        suggestions=(ALL_NETWORKS,),
        note="User email addresses whose network connections are excluded. The special string "
        "all_networks excludes every network of the account's users",
    ),
    Filter(
        "company_investors",
        _NETWORKS,
        note="Investor names; companies funded by any of them",
        example="Brightforge Ventures",
    ),
    Filter(
        "company_shares_investors_with",
        _NETWORKS,
        note="Company names; companies sharing one or more investors with them",
        example="Brightforge",
    ),
)

FILTERS_BY_NAME: Final[Mapping[str, Filter]] = MappingProxyType(
    {search_filter.name: search_filter for search_filter in FILTERS}
)

SEARCH_PAGING: Final = (
    Field("page", "integer", default=1, note="page number, from 1"),
    Field(
        "page_size",
        "integer",
        default=DEFAULT_SEARCH_PAGE_SIZE,
        minimum=MIN_SEARCH_PAGE_SIZE,
        maximum=MAX_SEARCH_PAGE_SIZE,
        note="people per page",
    ),
)

PAGE_SIZE: Final = Field("page[size]", note="items per page")
PAGE_AFTER: Final = Field("page[after]", note="a page that begins after this item")
PAGE_BEFORE: Final = Field("page[before]", note="a page that ends before this item")
CONTACT_IDS: Final = Field(
    "ids[]", "array", items="string", maximum=MAX_CONTACT_IDS, note="ids of contacts"
)

LIST_SEQUENCES: Final = Endpoint(
    "list_sequences",
    "GET",
    "/sequences",
    "list the sequences",
    query=(
        Field("name", note="case-insensitive search"),
        Field("status", values=tuple(SEQUENCE_STATUSES)),
        Field("created_by_user_id"),
        Field("created_by_user_email"),
        PAGE_SIZE,
        PAGE_AFTER,
    ),
    result=(
        Field(SEQUENCES_KEY, "array", items="object", members=SEQUENCE),
        Field(LINKS_KEY, "object", members=PAGE_LINKS),
    ),
)
ADD_LEADS: Final = Endpoint(
    "add_leads",
    "POST",
    "/sequences/{id}/leads",
    "add leads to a sequence",
    identifies="sequence",
    body=ADD_LEADS_BODY,
    result=ADD_LEADS_RESULT,
    refusals=(400, 422),
)
GET_CONTACTS: Final = Endpoint(
    "get_contacts",
    "GET",
    "/contacts",
    "read contacts by their ids",
    query=(CONTACT_IDS,),
    result=(Field(CONTACTS_KEY, "array", items="object", members=CONTACT),),
)
GET_CONTACT_BY_EMAIL: Final = Endpoint(
    "get_contact_by_email",
    "GET",
    "/contacts/email/{email}",
    "read one contact by email address",
    identifies="contact",
    result=CONTACT,
)
SEARCH_PEOPLE: Final = Endpoint(
    "search_people",
    "POST",
    "/people/search",
    "search people and their companies",
    body=(*FILTERS, *SEARCH_PAGING),
    result=PEOPLE_SEARCH_RESULT,
)
GET_LEAD_LIST: Final = Endpoint(
    "get_lead_list",
    "GET",
    "/lead-lists/{id}",
    "read one lead list",
    identifies="lead list",
    query=(PAGE_SIZE, PAGE_AFTER, PAGE_BEFORE),
    result=LEAD_LIST,
)
LIST_MAILBOXES: Final = Endpoint(
    "list_mailboxes",
    "GET",
    "/mailboxes",
    "list the connected mailboxes",
    query=(
        replace(PAGE_SIZE, maximum=MAX_MAILBOX_PAGE_SIZE),
        PAGE_AFTER,
        PAGE_BEFORE,
        Field("status", values=MAILBOX_STATUSES),
        Field("email_provider", values=EMAIL_PROVIDERS),
        Field("user_email"),
    ),
    result=(
        Field(MAILBOXES_KEY, "array", items="object", members=MAILBOX),
        Field(LINKS_KEY, "object", members=PAGE_LINKS),
    ),
)
UPDATE_MAILBOX: Final = Endpoint(
    "update_mailbox",
    "PATCH",
    "/mailboxes/{id}",
    "change a mailbox's daily email limit",
    identifies="mailbox",
    body=DAILY_EMAIL_LIMIT_BODY,
    result=MAILBOX,
)

ENDPOINTS: Final = (
    LIST_SEQUENCES,
    ADD_LEADS,
    GET_CONTACTS,
    GET_CONTACT_BY_EMAIL,
    SEARCH_PEOPLE,
    GET_LEAD_LIST,
    LIST_MAILBOXES,
    UPDATE_MAILBOX,
)
# List endpoints; each has a function and a command that return all items.
LISTS: Final = tuple(endpoint for endpoint in ENDPOINTS if endpoint.name.startswith("list_"))

# Frames by the name of their function: the meaning of one row, and its fields.
FRAMES: Final[Mapping[str, tuple[str, tuple[Field, ...]]]] = MappingProxyType(
    {
        "people": ("person", PERSON),
        "companies": ("company", COMPANY),
        "contacts": ("contact", CONTACT),
        "mailboxes": ("mailbox", MAILBOX),
        "sequences": ("sequence", SEQUENCE),
    }
)

# The columns that people read; a frame begins with them, followed by `id` and the constants.
FIRST_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        table: tuple(names.split())
        for table, names in {
            "people": """
                name title company_name location company_industry company_size company_location
                company_website current_position_start_date headline profnet_url
            """,
            "companies": """
                name website industry size estimated_number_of_employees location founded_year type
                latest_funding_stage estimated_revenue profnet_url
            """,
            "contacts": """
                asked found detail name email title company_name company_domain location time_zone
                owner last_contacted_at profnet_url
            """,
            "mailboxes": "email daily_email_limit status user_name",
            "sequences": "name status",
        }.items()
    }
)

# Error codes of a 422 response to adding leads; the list is not exhaustive.
ADD_LEADS_ERRORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "invalid_sequence_status": "the sequence's status does not allow adding leads",
        "missing_ai_credits": "some sequence users lack credits for additional leads",
        "missing_feature_copywriter": "some sequence users lack access to the copywriter features",
        "missing_feature_dialer": "the sequence has a phone-call stage and some users have no "
        "dialer configured",
        "missing_profnet_account": "not all sequence users connected a professional-network "
        "account",
        "missing_voice_clone": "the sequence has a voice stage and a sequence user has no usable "
        "voice clone",
        "missing_lead_field": "a lead data field that the sequence needs was not provided",
        "missing_sender_field": "a sender data field that the sequence needs is not filled in by a "
        "sequence user",
        "mailbox_unusable": "a selected mailbox cannot be used",
        "max_leads_threshold_reached": "adding all leads would exceed the account-wide "
        "per-sequence lead limit",
        "other_validation_error": "an unexpected validation error",
    }
)

NETWORK_NAME: Final = "profnet"
AUTHORIZATION_HEADER: Final = "Authorization"
AUTHORIZATION_SCHEME: Final = "Bearer"
RETRY_AFTER_HEADER: Final = "Retry-After"
# The header by which the sandbox names itself; the values in `suggestions` are the sandbox's.
SERVER_HEADER: Final = "Server"
SANDBOX_SERVER: Final = "outreach_frames.sandbox"


def leaves(
    fields: tuple[Field, ...], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield each field with its path, except objects and links.

    >>> [".".join(path) for path, _ in leaves(MAILBOX)][5:8]
    ['user.id', 'user.name', 'user.email']
    """
    for field in fields:
        if field.name == LINKS_KEY:
            continue
        if field.type == "object" and field.members:
            yield from leaves(field.members, (*path, field.name))
        else:
            yield (*path, field.name), field


def columns(fields: tuple[Field, ...]) -> dict[str, Field]:
    """Map column names of a resource's frame to fields, in the frame's order.

    A frame begins with its `FIRST_COLUMNS`, `id` and the constants; the others are in the
    interface's order. Appended fields may be among the first columns.

    >>> list(columns(PERSON))[10:15]
    ['profnet_url', 'id', 'object', 'company_object', 'first_name']
    """
    by_name = {"_".join(path): field for path, field in leaves(fields)}
    for table, (_, known) in FRAMES.items():
        if fields[: len(known)] == known:
            constants = (name for name, field in by_name.items() if field.constant)
            order = dict.fromkeys([*FIRST_COLUMNS[table], "id", *constants, *by_name])
            return {name: by_name[name] for name in order if name in by_name}
    return by_name
