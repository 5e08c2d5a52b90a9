"""Conversions of JSON, extension fields, failures and variants, which all interfaces use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from componentize_py_types import Err
from wit_world.imports import types as raw

from wattle import _json
from wattle.failure import Failure

T = TypeVar("T")


def value(text: str | None) -> Any:
    """Parses JSON text from the host. Text that is nested too deeply stays text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def text(what: str, of: Any) -> str | None:
    """Serializes an optional JSON value for the host."""
    return None if of is None else _json.write(what, of)


def extra(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Converts extension fields from the host."""
    return {key: value(it) for key, it in pairs}


def raw_extra(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Converts extension fields for the host."""
    return [(key, _json.write(f"`{key}`", it)) for key, it in fields.items()]


def failure(of: raw.Failure) -> Failure:
    """Converts a failure from the host."""
    return Failure(of.code, of.message, retryable=of.retryable, details=value(of.details))


def raw_failure(of: Failure) -> raw.Failure:
    """Converts a failure for the host. An error about details would hide the failure."""
    try:
        details = text("the details", of.details)
    except Failure:
        details = json.dumps(repr(of.details))
    return raw.Failure(_utf8(of.code), _utf8(of.message), of.retryable, details)


def _utf8(of: Any) -> str:
    """Replaces lone surrogates, which are not text for the host."""
    return str(of).encode(errors="replace").decode()


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Calls the host, and raises its failure."""
    try:
        return function(*arguments)
    except Err as error:
        raised = failure(error.value)
    raise raised


def results(of: list[Any], convert: Callable[[Any], T]) -> list[T | Failure]:
    """Converts the outputs and failures of several calls."""
    return [failure(it.value) if isinstance(it, Err) else convert(it.value) for it in of]


def kind(of: Any) -> str:
    """Returns the name of a case of a variant, such as `tool-calls`, or the text of `other`."""
    name = type(of).__name__.partition("_")[2].rstrip("_")
    if name == "Other":
        return str(of.value)
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def variant(module: ModuleType, of: str, name: str) -> Any:
    """Returns a case of a variant by its name, such as `tool-calls`; other names are `other`."""
    camel = "".join(word.capitalize() for word in name.split("-"))
    case = getattr(module, f"{of}_{camel}", None) or getattr(module, f"{of}_{camel}_", None)
    is_known = case is not None and not getattr(case, "__annotations__", {})
    return case() if is_known and case is not None else getattr(module, f"{of}_Other")(name)
