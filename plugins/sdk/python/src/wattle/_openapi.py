"""The OpenAPI descriptions of the endpoints of a plugin.

All endpoints share the schemas of dataclasses, which have the names of the classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mashumaro.jsonschema import JSONSchemaBuilder
from mashumaro.jsonschema.dialects import DRAFT_2020_12

from wattle import _schema

SCHEMAS = "#/components/schemas"
JSON = "application/json"
EVENTS = "text/event-stream"


@dataclass(frozen=True)
class Endpoint:
    """The declaration of an endpoint."""

    method: str
    path: str
    query: dict[str, Any]
    body: Any
    returns: dict[int, Any]
    events: Any
    bytes: str | None
    error: Any


@dataclass(frozen=True)
class Described:
    """The operations of endpoints in their order, and the schemas that they refer to."""

    operations: list[dict[str, Any]]
    schemas: dict[str, Any]


def describe(endpoints: Iterable[tuple[Endpoint, str]]) -> Described:
    """Describes endpoints with their documentation."""
    builder = JSONSchemaBuilder(
        DRAFT_2020_12, all_refs=True, ref_prefix=SCHEMAS, plugins=_schema.plugins()
    )
    operations = [_operation(endpoint, doc, builder) for endpoint, doc in endpoints]
    definitions = builder.get_definitions().to_dict()
    schemas = {name: _schema.normalize(definition) for name, definition in definitions.items()}
    return Described(operations, schemas)


def routes(endpoints: Iterable[tuple[Endpoint, str]]) -> list[dict[str, Any]]:
    """Returns the extension field `openapi` of each route.

    It has the operation, and the schemas that the operation refers to.
    """
    described = describe(endpoints)
    found = []
    for operation in described.operations:
        names = _all_references(operation, described.schemas)
        schemas = {name: described.schemas[name] for name in sorted(names)}
        found.append({"operation": operation, "schemas": schemas})
    return found


def document(title: str, endpoints: Iterable[tuple[Endpoint, str]]) -> dict[str, Any]:
    """Returns the OpenAPI document of endpoints."""
    endpoints = list(endpoints)
    described = describe(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for (endpoint, _), operation in zip(endpoints, described.operations, strict=True):
        path = endpoint.path.replace("{*", "{")
        paths.setdefault(path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        # OpenAPI demands a version. That of the app is in its manifest.
        "info": {"title": title, "version": "1"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(described.schemas.items()))},
    }


def _operation(endpoint: Endpoint, doc: str, builder: JSONSchemaBuilder) -> dict[str, Any]:
    def schema(of: Any) -> dict[str, Any]:
        return _schema.normalize(builder.build(of).to_dict())

    text = {"type": "string"}
    names = [name for name in endpoint.path.split("/") if name[:1] == "{" and name[-1:] == "}"]
    parameters = [_parameter(name[1:-1].lstrip("*"), "path", True, text) for name in names]
    for name, of in endpoint.query.items():
        is_required = not _schema.is_optional(of)
        parameters.append(_parameter(name, "query", is_required, schema(_schema.required(of))))
    operation: dict[str, Any] = {}
    summary, _, description = doc.partition("\n\n")
    if summary:
        operation["summary"] = summary.replace("\n", " ")
    if description:
        operation["description"] = description
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        content = {JSON: {"schema": schema(_schema.required(endpoint.body))}}
        is_required = not _schema.is_optional(endpoint.body)
        operation["requestBody"] = {"required": is_required, "content": content}
    contents: dict[str, dict[str, Any]] = {}
    for status, of in endpoint.returns.items():
        content = contents.setdefault(str(status), {})
        if of is not None:
            content[JSON] = {"schema": schema(of)}
    if endpoint.events is not None:
        contents.setdefault("200", {})[EVENTS] = {"schema": schema(endpoint.events)}
    if endpoint.bytes is not None:
        contents.setdefault("200", {})[endpoint.bytes] = {"schema": text}
    if endpoint.error is not None:
        contents.setdefault("default", {})[JSON] = {"schema": schema(endpoint.error)}
    operation["responses"] = _responses(contents)
    return operation


def _responses(contents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if not contents:
        # OpenAPI demands a response.
        return {"default": {"description": "Response"}}
    responses: dict[str, Any] = {}
    for status, content in sorted(contents.items()):
        is_error = status == "default" or status[0] in "45"
        response: dict[str, Any] = {"description": "Error" if is_error else "Success"}
        if content:
            response["content"] = content
        responses[status] = response
    return responses


def _parameter(name: str, place: str, is_required: bool, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "required": is_required, "schema": schema}


def _all_references(operation: Any, schemas: dict[str, Any]) -> set[str]:
    """Returns the names of the schemas that an operation refers to, also through other schemas."""
    names = _references(operation)
    waiting = list(names)
    while waiting:
        for name in _references(schemas[waiting.pop()]) - names:
            names.add(name)
            waiting.append(name)
    return names


def _references(document: Any) -> set[str]:
    if isinstance(document, list):
        return set().union(*map(_references, document))
    if not isinstance(document, dict):
        return set()
    names = set().union(*map(_references, document.values()))
    reference = document.get("$ref")
    if isinstance(reference, str) and reference.startswith(f"{SCHEMAS}/"):
        names.add(reference.removeprefix(f"{SCHEMAS}/"))
    return names
