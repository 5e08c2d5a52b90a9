"""JSON text: failures name what was read or written."""

from __future__ import annotations

import json
import re
from typing import Any

from wattle.failure import Failure

_PLURAL = ("the arguments", "the settings")
"""Beginnings of plurals that messages are about."""

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""The beginning of an escaped surrogate in JSON text."""


def be(what: str) -> str:
    """Returns the verb of a sentence about `what`."""
    return "are" if what.startswith(_PLURAL) else "is"


def read(what: str, text: str | bytes) -> Any:
    """Parses JSON text. A failure contains `what`."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        if SURROGATE.search(text if isinstance(text, str) else text.decode()):
            # Half of a pair is no text, neither for the host nor for other languages.
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except (ValueError, RecursionError) as error:
        raise Failure.invalid(f"{what} {be(what)} invalid: {error}") from None


def write(what: str, value: Any) -> str:
    """Serializes a value as JSON text. A failure contains `what`."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
        # A lone surrogate is not text for the host.
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Failure.internal(f"write {what} as JSON: {error}") from error
    return text


def to_value(what: str, value: Any) -> Any:
    """Converts a value to plain JSON. A failure contains `what`."""
    return json.loads(write(what, value))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"`{name}` is not JSON")


def _plain(value: Any) -> Any:
    """Converts a value that `json` does not know, such as a dataclass, an enum or a date."""
    from wattle import _schema

    return _schema.encode(value)
