"""JSON Schemas of types, and conversions between JSON and types.

All SDKs write schemas in one form: draft 2020-12 without `$schema`, with references inlined,
without the names of types, and with the descriptions of types and fields. A type without a
description of its unknown fields accepts them.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import cache
from inspect import cleandoc
from types import UnionType
from typing import Any

import fastjsonschema
from mashumaro.codecs.basic import BasicDecoder, BasicEncoder
from mashumaro.exceptions import InvalidFieldValue, UnserializableField
from mashumaro.jsonschema import build_json_schema
from mashumaro.jsonschema.models import Context, JSONSchema
from mashumaro.jsonschema.plugins import BasePlugin
from mashumaro.jsonschema.schema import Instance
from typing_extensions import Doc, is_typeddict

from wattle import _json
from wattle.failure import Failure

EMPTY_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
"""The schema of an object without properties."""


class Mismatch(Exception):
    """A value does not fit a type."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


class Codec:
    """Reads values of one type from JSON."""

    def __init__(self, of: Any, *, is_closed: bool = False) -> None:
        """Creates the codec of a type. A closed codec refuses unknown fields of dataclasses."""
        self.schema = schema(of, is_closed=is_closed)
        try:
            self._decoder: BasicDecoder[Any] = BasicDecoder(of)
        except UnserializableField as error:
            raise TypeError(f"`{name_of(of)}` cannot be JSON: {error}") from None
        self._validate = _validator(self.schema)

    def decode(self, what: str, value: Any) -> Any:
        """Converts a JSON value to the type. A failure has `what` and the path of the bad value."""
        try:
            return self.convert(value)
        except Mismatch as error:
            raise mistake(what, error.path, error.reason) from error.__cause__

    def convert(self, value: Any) -> Any:
        """Converts a JSON value to the type. Raises `Mismatch` if it does not fit."""
        self._match(value)
        try:
            return self._decoder.decode(value)
        except Failure:
            raise
        except Exception as error:
            path, cause = _innermost(error)
            raise Mismatch(path, str(cause)) from error

    def check(self, what: str, value: Any) -> None:
        """Checks that a JSON value matches the schema of the type."""
        try:
            self._match(value)
        except Mismatch as error:
            raise mistake(what, error.path, error.reason) from None

    def _match(self, value: Any) -> None:
        try:
            self._validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            path = str(error.name or "data").removeprefix("data").removeprefix(".")
            raise Mismatch(path, _reason(error)) from None


@cache
def _codec(of: Any, is_closed: bool) -> Codec:
    return Codec(of, is_closed=is_closed)


def codec(of: Any, *, is_closed: bool = False) -> Codec:
    """Returns the codec of a type, which is made once."""
    try:
        return _codec(of, is_closed)
    except TypeError:
        # `Annotated` with metadata that cannot be hashed, or a type that cannot be JSON.
        return Codec(of, is_closed=is_closed)


def decode(what: str, of: Any, value: Any) -> Any:
    """Converts a JSON value to a type; `None` as the type leaves the value as it is."""
    return value if of is None else codec(of).decode(what, value)


@cache
def _encoder(of: Any) -> BasicEncoder[Any]:
    return BasicEncoder(of)


def encode(value: Any) -> Any:
    """Converts a value to JSON by its own type. Raises a `TypeError` if that is not possible."""
    try:
        of: Any = type(value)
        return _encoder(of).encode(value)
    except UnserializableField:
        raise TypeError(f"a value of type `{type(value).__name__}` cannot be JSON") from None


def prepare(*, reads: Iterable[Any] = (), writes: Iterable[Any] = ()) -> None:
    """Makes what reads and writes types, at the top of a module.

    Each call of a component begins with the state in which the component was built, and would make
    it again.
    """
    for of in reads:
        codec(of)
    for of in writes:
        _encoder(of)


def mistake(what: str, path: str, reason: str) -> Failure:
    """Returns the failure of a bad value at a path, which is empty for the whole value."""
    place = f" at `{path}`" if path else ""
    message = f"{what} {_json.be(what)} invalid{place}: {reason}"
    return Failure.invalid(message, details={"path": path or "."})


def name_of(of: Any) -> str:
    """Returns the name of a type for messages."""
    return of.__name__ if isinstance(of, type) else str(of).replace("typing.", "")


def schema(of: Any, *, is_closed: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema of a type."""
    try:
        document = build_json_schema(of, plugins=plugins(is_closed=is_closed)).to_dict()
    except NotImplementedError as error:
        raise TypeError(f"`{name_of(of)}` has no JSON Schema: {error}") from None
    return _with_root(normalize(document))


def _with_root(form: dict[str, Any]) -> dict[str, Any]:
    """Writes a type that contains itself in place of the reference to it.

    The host reads the channels of a node at the root.
    """
    name = str(form.get("$ref", "")).rpartition("/")[2]
    return {**form["$defs"][name], "$defs": form["$defs"]} if name else form


def plugins(*, is_closed: bool = False) -> list[BasePlugin]:
    """Returns what mashumaro needs to write schemas like the other SDKs."""
    return [_Form(is_closed)]


def normalize(document: dict[str, Any]) -> dict[str, Any]:
    """Brings a schema of mashumaro into the form that all SDKs share."""
    form: dict[str, Any] = {}
    for key, value in document.items():
        if key in ("title", "propertyNames") or (key == "default" and value is None):
            continue
        if key in ("properties", "$defs"):
            value = {name: normalize(inner) for name, inner in value.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            value = [normalize(inner) for inner in value]
        elif isinstance(value, dict) and key != "default":
            value = normalize(value)
        form[key] = value
    if "required" in form:
        wanted = set(form["required"])
        form["required"] = [name for name in form.get("properties", {}) if name in wanted]
        if not form["required"]:
            del form["required"]
    if form.get("type") == "object" and not form.keys() & {"properties", "additionalProperties"}:
        # Without `properties` a schema describes any object, also for all channels of a state.
        form["additionalProperties"] = True
    values = form.get("enum", [form["const"]] if "const" in form else [])
    if values and "type" not in form and all(isinstance(value, str) for value in values):
        form = {"type": "string", **form}
    return _with_null(form)


def _with_null(form: dict[str, Any]) -> dict[str, Any]:
    """Writes an optional type as a list of types, as far as that is possible."""
    choices = form.get("anyOf", [])
    others = [choice for choice in choices if choice != {"type": "null"}]
    if len(choices) != 2 or len(others) != 1 or not isinstance(others[0].get("type"), str):
        return form
    if "const" in others[0]:
        return form
    rest = {key: value for key, value in form.items() if key != "anyOf"}
    optional = {**others[0], **rest, "type": [others[0]["type"], "null"]}
    if "enum" in optional:
        optional["enum"] = [*optional["enum"], None]
    return optional


class _Form(BasePlugin):
    """Adds descriptions, and says of unknown fields what the type says."""

    def __init__(self, is_closed: bool) -> None:
        self._is_closed = is_closed

    def get_schema(
        self, instance: Instance, ctx: Context, schema: JSONSchema | None = None
    ) -> JSONSchema | None:
        if schema is None:
            return JSONSchema() if instance.type is object else None
        of = instance.origin_type
        # A type that contains itself is a definition, to which the schema refers.
        name = (schema.reference or "").rpartition("/")[2]
        target = ctx.definitions.get(name, schema)
        is_record = isinstance(of, type) and is_dataclass(of)
        if is_record or is_typeddict(of):
            refuses = (
                instance.get_self_config().forbid_extra_keys
                if is_record
                else getattr(of, "__closed__", None) is True
            )
            target.additionalProperties = False if self._is_closed or refuses else None
            target.description = target.description or _doc(of)
            target.properties = target.properties or {}
            if is_record:
                _add_defaults(instance, of, target.properties)
        for annotation in instance.annotations:
            text = annotation.documentation if isinstance(annotation, Doc) else annotation
            if isinstance(text, str):
                schema.description = cleandoc(text)
        return None


def _add_defaults(instance: Instance, of: Any, properties: dict[str, JSONSchema]) -> None:
    """Adds the defaults of fields such as `field(default_factory=list)`.

    A factory that is a function may return another value each time.
    """
    types = {name: of for name, of, *_ in instance.fields()}
    for field in dataclasses.fields(of):
        if not isinstance(field.default_factory, type) or field.name not in types:
            continue
        inner = instance.derive(type=types[field.name], name=field.name)
        encoder: BasicEncoder[Any] = BasicEncoder(inner.type)
        properties[inner.alias or field.name].default = encoder.encode(field.default_factory())


def _doc(of: Any) -> str | None:
    """Returns the documentation of a type, unless `dataclass` made it."""
    doc = of.__dict__.get("__doc__")
    return cleandoc(doc) if doc and not doc.startswith(f"{of.__name__}(") else None


def _validator(document: dict[str, Any]) -> Any:
    # Formats stay annotations. Types with a format, such as dates, check their text themselves.
    return fastjsonschema.compile(
        {"$schema": "http://json-schema.org/draft-07/schema#", **_draft_07(document)},
        use_default=False,
        use_formats=False,
    )


def _reason(error: fastjsonschema.JsonSchemaValueException) -> str:
    if error.rule == "required":
        missing = [name for name in error.rule_definition if name not in error.value]
        return f"missing field {_listed(missing)}"
    if error.rule == "additionalProperties" and error.rule_definition is False:
        known = error.definition.get("properties", {})
        unknown = [name for name in error.value if name not in known]
        return f"unknown field {_listed(unknown)}, expected {_listed(known) or 'none'}"
    return error.message.removeprefix(str(error.name or "data")).strip()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _draft_07(document: Any) -> Any:
    """Converts a schema to the draft that the validator knows, which writes tuples as `items`."""
    if isinstance(document, list):
        return [_draft_07(inner) for inner in document]
    if not isinstance(document, dict):
        return document
    converted: dict[str, Any] = {}
    for key, value in document.items():
        if key in ("properties", "$defs"):
            converted[key] = {name: _draft_07(inner) for name, inner in value.items()}
        elif key in ("const", "default", "enum"):
            converted[key] = value
        else:
            converted[key] = _draft_07(value)
    if "prefixItems" in converted:
        converted["additionalItems"] = converted.pop("items", True)
        converted["items"] = converted.pop("prefixItems")
    return converted


def _innermost(error: BaseException) -> tuple[str, BaseException]:
    """Returns the path of the field that could not be decoded, and the reason."""
    path = []
    cause: BaseException = error
    while isinstance(cause, InvalidFieldValue):
        path.append(str(cause.field_name))
        inner = cause.__cause__ or cause.__context__
        if inner is None:
            break
        cause = inner
    return ".".join(path), cause


def is_optional(of: Any) -> bool:
    """Returns true if a type accepts `None`."""
    if typing.get_origin(of) is typing.Annotated:
        return is_optional(typing.get_args(of)[0])
    is_union = typing.get_origin(of) in (typing.Union, UnionType)
    return is_union and type(None) in typing.get_args(of)


def required(of: Any) -> Any:
    """Returns an optional type without `None`."""
    others = [of for of in typing.get_args(of) if of is not type(None)]
    return others[0] if is_optional(of) and len(others) == 1 else of
