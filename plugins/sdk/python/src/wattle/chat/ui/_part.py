"""Parts of messages as the SDK writes them."""

from __future__ import annotations

from typing import Any

from wattle.chat._stored import ToolCall

TOOL = "tool-"
"""Prefix of the type of a tool's part, before the name of the tool."""


PART_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A part of a message of the AI SDK: the start of a model turn, a text, or a "
    "tool call.",
    "properties": {
        "type": {
            "type": "string",
            "description": "`step-start`, `text`, `reasoning`, or `tool-` and the name of the "
            "tool.",
        },
        "text": {"type": "string"},
        "toolCallId": {"type": "string"},
        "input": {},
        "state": {
            "type": "string",
            "description": "`done` for a text of the assistant; `input-available`, "
            "`output-available` or `output-error` for a tool call.",
        },
        "output": {},
        "errorText": {"type": "string"},
    },
    "required": ["type"],
}
"""The schema of a part. Clients send parts with other fields, so a part has no type."""


def step_start() -> dict[str, Any]:
    """Creates the start of a model turn."""
    return {"type": "step-start"}


def user_text(text: str) -> dict[str, Any]:
    """Creates the text of a message of the user."""
    return {"type": "text", "text": text}


def assistant_text(kind: str, text: str) -> dict[str, Any]:
    """Creates a text of the assistant: `text` or `reasoning`."""
    return {"type": kind, "text": text, "state": "done"}


def pending(call: ToolCall) -> dict[str, Any]:
    """Creates a tool call that has no result yet."""
    return _tool(call, "input-available")


def succeeded(call: ToolCall, output: Any) -> dict[str, Any]:
    """Creates a tool call with the output of the tool."""
    return {**_tool(call, "output-available"), "output": output}


def failed(call: ToolCall, error: str) -> dict[str, Any]:
    """Creates a tool call with its error, for users."""
    return {**_tool(call, "output-error"), "errorText": error}


def _tool(call: ToolCall, state: str) -> dict[str, Any]:
    return {
        "type": f"{TOOL}{call.name}",
        "toolCallId": call.id,
        "input": call.arguments,
        "state": state,
    }
