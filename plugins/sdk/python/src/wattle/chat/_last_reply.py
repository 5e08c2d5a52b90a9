"""The reply to the last user message of a conversation, and the steps that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wattle.chat import _stored
from wattle.chat._document import Document
from wattle.chat._stored import Stored, ToolCall


@dataclass
class ModelStep(Document):
    """A model turn: its text and the tool calls that it requested."""

    type: Literal["model"]
    content: str
    tool_calls: list[ToolCall]


@dataclass
class ToolStep(Document):
    """A tool call: its arguments and its result."""

    type: Literal["tool"]
    call_id: str
    tool: str
    arguments: Any
    status: str
    result: Any


ReplyStep: TypeAlias = ModelStep | ToolStep
"""A step that led to a reply."""


@dataclass
class LastReply:
    """The reply to the last user message, with its steps."""

    text: str = ""
    """Text of the last model turn; empty if it has none."""
    steps: list[ReplyStep] = field(default_factory=list)
    """The steps in order."""


def read(channel: Any) -> LastReply:
    """Reads the channel with the conversation."""
    messages = _stored.read(channel)
    since = messages[_stored.last_user(messages) :]
    last = LastReply()
    for message in since:
        if message.is_assistant():
            last.text = message.text()
            last.steps.append(ModelStep("model", last.text, message.tool_calls))
        elif message.is_tool():
            last.steps.append(_tool(message, since))
    return last


def _tool(message: Stored, since: list[Stored]) -> ToolStep:
    calls = (call for it in since for call in it.tool_calls if call.id == message.tool_call_id)
    call = next(calls, None)
    arguments = None if call is None else call.arguments
    return ToolStep(
        "tool", message.tool_call_id, message.name, arguments, message.status, message.result()
    )
