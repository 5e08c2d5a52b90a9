"""Messages with their parts as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from mashumaro.config import BaseConfig

from wattle.chat.ui._client import Part
from wattle.chat.ui._part import PART_SCHEMA

PARTS = {
    "type": "array",
    "description": "Text, reasoning, files and tool calls, in order.",
    "items": PART_SCHEMA,
}
"""The schema of the parts of a message."""


class Role(StrEnum):
    """The sender of a message."""

    SYSTEM = "system"
    """The service."""
    USER = "user"
    """The person."""
    ASSISTANT = "assistant"
    """The model, with the tools it called."""


@dataclass
class UiMessage:
    """A message of the AI SDK."""

    # The schema of each app with conversations has the line above as its description.

    id: Annotated[str, "Unique in its conversation."]
    role: Annotated[Role, "The sender."]
    parts: list[dict[str, Any]]
    """Text, reasoning, files and tool calls, in order."""

    class Config(BaseConfig):
        """The schema of the parts."""

        json_schema = {"properties": {"parts": PARTS}}

    def text(self) -> str:
        """Returns the text parts, one a line.

        >>> parts = [{"type": "step-start"}, {"type": "text", "text": "hello"}]
        >>> UiMessage("m", Role.ASSISTANT, parts).text()
        'hello'
        """
        parts = [Part.of(part) for part in self.parts]
        return "\n".join(part.text for part in parts if part.kind == "text")
