"""The form of the JSON documents of conversations."""

from __future__ import annotations

from typing import Any, ClassVar

from mashumaro.config import BaseConfig

ALIASES = {
    "call_id": "callId",
    "created_ms": "createdMs",
    "error_text": "errorText",
    "response_schema": "responseSchema",
    "thread_id": "threadId",
    "tool_call_id": "toolCallId",
    "tool_calls": "toolCalls",
    "updated_ms": "updatedMs",
}
"""The names in JSON of all fields whose names have several words."""


class Document:
    """A dataclass whose fields have the names of `ALIASES` in JSON."""

    OMITTED: ClassVar[tuple[str, ...]] = ()
    """Names of JSON fields that are left out if they have no value."""

    class Config(BaseConfig):
        """The names of the fields in JSON."""

        # An alias at the field itself cannot be written if the field has a default.
        aliases = ALIASES
        serialize_by_alias = True

    def __post_serialize__(self, document: dict[str, Any]) -> dict[str, Any]:
        """Leaves out the fields without a value."""
        return {
            name: value
            for name, value in document.items()
            if value is not None or name not in self.OMITTED
        }
