"""The interface as an OpenAPI 3.1 document, generated from `spec`.

The sandbox serves the file at `/openapi.json`. The sandbox's own choices are marked
`x-sandbox-choice`. After a change of `spec`, run ``python -m docs.openapi``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from docs.openapi.choices import choices
from docs.openapi.exchanges import exchanges
from outreach_frames import spec
from outreach_frames.sandbox import rules
from outreach_frames.sandbox.add_leads import MAX_LEADS_PER_SEQUENCE
from outreach_frames.sandbox.faults import Call

PATH: Final = Path(spec.__file__).parent / "sandbox/data/openapi.json"
CHOICE: Final = "x-sandbox-choice"

Schema = dict[str, Any]

_CAUSES: Final = "\n".join(f"- `{code}`: {cause}" for code, cause in spec.ADD_LEADS_ERRORS.items())
_MESSAGE: Final = spec.Field("message", required=True, note="details")
_VALIDATION_ERROR: Final = (
    spec.Field("error_code", required=True, note=f"known codes; others are possible:\n\n{_CAUSES}"),
    _MESSAGE,
)
_VALIDATION_ERRORS: Final = spec.Field(
    spec.VALIDATION_ERRORS_KEY, "array", items="object", members=_VALIDATION_ERROR, required=True
)
_ERROR: Final = spec.Field(
    "error", "object", members=(spec.Field("code", required=True), _MESSAGE), required=True
)

# Groups of fields with a named schema, to share the schema or to find it easily.
COMPONENTS: Final[Mapping[str, tuple[spec.Field | spec.Filter, ...]]] = {
    "Link": spec.LINK,
    "PageLinks": spec.PAGE_LINKS,
    "Sequence": spec.SEQUENCE,
    "AddLeads": spec.ADD_LEADS_BODY,
    "Lead": spec.LEAD,
    "Overrides": spec.OVERRIDES,
    "AddLeadsSettings": spec.ADD_LEADS_SETTINGS,
    "AddLeadsResult": spec.ADD_LEADS_RESULT,
    "LeadReference": spec.LEAD_REFERENCE,
    "Contact": spec.CONTACT,
    "PhoneNumber": spec.PHONE_NUMBER,
    "Activity": spec.ACTIVITY,
    "PeopleSearch": spec.SEARCH_PEOPLE.body,
    "PeopleSearchResult": spec.PEOPLE_SEARCH_RESULT,
    "Pagination": spec.PAGINATION,
    "Person": spec.PERSON,
    "Experience": spec.EXPERIENCE,
    "Education": spec.EDUCATION,
    "Language": spec.LANGUAGE,
    "Company": spec.COMPANY,
    "CompanyLocation": spec.COMPANY_LOCATION,
    "DepartmentHeadcount": spec.DEPARTMENT_HEADCOUNT,
    "JobFunctionHeadcount": spec.JOB_FUNCTION_HEADCOUNT,
    "LeadList": spec.LEAD_LIST,
    "Mailbox": spec.MAILBOX,
    "DailyEmailLimit": spec.DAILY_EMAIL_LIMIT_BODY,
    "ValidationErrors": (_VALIDATION_ERRORS,),
    "Error": (_ERROR,),
}
_NAMES: Final = {fields: name for name, fields in COMPONENTS.items()}

ABOUT: Final = f"""\
Sequences, leads, contacts, people search, lead lists and mailboxes.

`{CHOICE}` marks a choice where the interface document is silent. It describes how the
sandbox behaves, and clients must not rely on this behaviour. In addition, the sandbox rejects
requests for another host (400) and undocumented methods (405). The request rate is not limited;
429, 500 and 503 occur only as simulated faults.
"""


def describe() -> Schema:
    """Return the OpenAPI document.

    >>> sorted(describe()["paths"])[:2]
    ['/contacts', '/contacts/email/{email}']
    """
    paths: dict[str, Schema] = {}
    for endpoint, (call, response) in exchanges().items():
        operations = paths.setdefault(endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(endpoint, call, response)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sales outreach and prospect data",
            "description": ABOUT,
            "version": "not documented",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "the sandbox that serves this document"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "responses": {name: _error(status, text) for status, (name, text) in _ERRORS.items()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": spec.AUTHORIZATION_SCHEME.lower(),
                    "description": "The account's token; how it is issued is not documented.",
                    CHOICE: "printed or returned when the sandbox starts",
                }
            },
        },
    }


def document() -> bytes:
    """Return the OpenAPI document as JSON."""
    return msgspec.json.format(msgspec.json.encode(describe())) + b"\n"


def _operation(endpoint: spec.Endpoint, example: Call, response: Any) -> Schema:
    operation: Schema = {
        "operationId": endpoint.name,
        "summary": endpoint.note.capitalize(),
        "tags": [endpoint.path.split("/")[1]],
    }
    parameters = [
        *(_path_parameter(name, example) for name in re.findall(r"\{(\w+)\}", endpoint.path)),
        *(_query_parameter(field, example) for field in endpoint.query),
    ]
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body:
        operation["requestBody"] = {
            "required": True,
            "content": _json(_NAMES[endpoint.body], msgspec.json.decode(example.body)),
        }
    operation["responses"] = _responses(endpoint, response)
    return operation


def _path_parameter(name: str, example: Call) -> Schema:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": example.path_values[name],
    }


def _query_parameter(field: spec.Field, example: Call) -> Schema:
    parameter: Schema = {"name": field.name, "in": "query"}
    if field.note:
        parameter["description"] = field.note.capitalize()
    schema = _schema(field)
    if field.name == spec.PAGE_SIZE.name:
        limit = field.maximum or rules.MAX_PAGE_SIZE
        schema |= {"pattern": f"^({'|'.join(map(str, range(1, limit + 1)))})$"}
        default = f"{rules.DEFAULT_PAGE_SIZE} by default"
        parameter[CHOICE] = default if field.maximum else f"{default}, at most {limit}"
    if field.name in {spec.PAGE_AFTER.name, spec.PAGE_BEFORE.name}:
        parameter[CHOICE] = "an unknown cursor and both cursors at once are rejected (400)"
    if field == spec.CONTACT_IDS:
        schema["minItems"] = 1
        parameter[CHOICE] = "a request without ids is rejected (400)"
    given = [value for name, value in example.query if name == field.name]
    if given:
        parameter["example"] = given if field.type == "array" else given[0]
    return parameter | {"schema": schema}


def _responses(endpoint: spec.Endpoint, example: Any) -> Schema:
    success: Schema = {
        "description": "Success",
        "content": _json(_NAMES.get(endpoint.result) or _object(endpoint.result), example),
    }
    if endpoint is spec.LIST_SEQUENCES:
        success["headers"] = {
            spec.RETRY_AFTER_HEADER: {
                "description": "How long to wait before the next request: seconds, or a date",
                "schema": {"type": "string"},
            }
        }
    if endpoint is spec.ADD_LEADS:
        success[CHOICE] = (
            "200, sent after the leads were added; "
            f"a sequence holds at most {MAX_LEADS_PER_SEQUENCE:,} leads"
        )
    statuses = [400, 401]
    if "{" in endpoint.path:
        statuses.append(404)
    if endpoint.body:
        statuses.append(413)
    errors = {
        str(status): {"$ref": f"#/components/responses/{_ERRORS[status][0]}"}
        for status in sorted({*statuses, *endpoint.refusals})
    }
    return {"200": success, **errors}


# The name and description of the component for each error status.
_ERRORS: Final = {
    400: (
        "BadRequest",
        "The request is malformed; this status is documented only for adding leads",
    ),
    401: ("Unauthorized", "The token is missing or wrong"),
    404: ("NotFound", "No object has this id or email"),
    413: ("ContentTooLarge", f"The body is larger than {rules.MAX_BODY_BYTES // 10**6} MB"),
    422: ("ValidationFailed", "The request is well formed but cannot be completed"),
}


def _error(status: int, text: str) -> Schema:
    response: Schema = {"description": text}
    if status in spec.ADD_LEADS.refusals and status != 400:
        (code, cause), *_ = spec.ADD_LEADS_ERRORS.items()
        errors = [{"error_code": code, "message": cause.capitalize()}]
        return response | {
            "content": _json("ValidationErrors", {spec.VALIDATION_ERRORS_KEY: errors})
        }
    example = msgspec.json.decode(rules.error_body(status, text.partition(";")[0]))
    response[CHOICE] = "the status and the format of the body"
    if status == 400:
        response[CHOICE] = "the format of the body, and the status except for adding leads"
    if status == 401:
        response["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}, CHOICE: "sent"}}
    return response | {"content": _json("Error", example)}


def _json(schema: str | Schema, example: Any) -> Schema:
    full = _reference(schema) if isinstance(schema, str) else schema
    return {"application/json": {"schema": full, "example": example}}


def _schemas() -> dict[str, Schema]:
    schemas = {name: _object(fields) for name, fields in COMPONENTS.items()}
    schemas["Lead"]["properties"]["data"] |= {
        "maxProperties": spec.MAX_DATA_FIELDS,
        "propertyNames": {
            "pattern": f"^{spec.DATA_NAME_PATTERN}$",
            "maxLength": spec.MAX_DATA_NAME_LENGTH,
        },
        "additionalProperties": {"type": "string", "maxLength": spec.MAX_DATA_VALUE_LENGTH},
    }
    schemas["Lead"]["anyOf"] = [
        {"required": [name], "properties": {name: {"type": "string"}}}
        for name in spec.LEAD_IDENTIFIERS
    ]
    for place, keywords, text in choices():
        schema = _at(schemas, place)
        note = f"{schema[CHOICE]}; {text}" if CHOICE in schema else text
        schema.update(keywords, **{CHOICE: note})
    errors = schemas["ValidationErrors"]["properties"][spec.VALIDATION_ERRORS_KEY]
    errors["minItems"] = 1
    errors["items"]["properties"]["error_code"]["examples"] = list(spec.ADD_LEADS_ERRORS)
    return schemas


def _at(schemas: Mapping[str, Schema], place: str) -> Schema:
    name, _, property_name = place.partition(".")
    found: Schema = schemas[name]
    return found["properties"][property_name] if property_name else found


def _object(fields: Sequence[spec.Field | spec.Filter]) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
    }
    required = [field.name for field in fields if isinstance(field, spec.Field) and field.required]
    return schema | ({"required": required} if required else {})


def _property(field: spec.Field | spec.Filter) -> Schema:
    schema = _schema(field) if isinstance(field, spec.Field) else _filter_schema(field)
    excludes = field.excludes if isinstance(field, spec.Filter) else ""
    note = field.note or (f"the opposite of {excludes}" if excludes else "")
    return {"description": note[0].upper() + note[1:], **schema} if note else schema


def _filter_schema(field: spec.Filter) -> Schema:
    if field.type != "array":
        return {"type": field.type}
    items: Schema = {"type": "string"} | _format(field)
    if field.suggestions:
        items["examples"] = list(field.suggestions)
    return {"type": "array", "items": items}


def _schema(field: spec.Field) -> Schema:
    if field.type == "array":
        schema: Schema = {"type": "array", "items": _items(field)}
        return schema | ({"maxItems": field.maximum} if field.maximum else {})
    if field.members:
        return _members(field.members)
    schema = {"type": [field.type, "null"] if field.nullable else field.type}
    schema |= _format(field)
    if field.constant:
        schema["const"] = field.constant
    if field.values:
        schema["enum"] = list(field.values)
    if field.type == "integer":
        bounds = {"minimum": field.minimum, "maximum": field.maximum}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    if field.default is not None:
        schema["default"] = field.default
    return schema


def _items(field: spec.Field) -> Schema:
    if field.members:
        return _members(field.members)
    return {"type": field.items} | _format(field) if field.items else {}


def _members(members: tuple[spec.Field, ...]) -> Schema:
    name = _NAMES.get(members)
    return _reference(name) if name else _object(members)


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _format(field: spec.Field | spec.Filter) -> Schema:
    return {"format": field.format} if field.format else {}
