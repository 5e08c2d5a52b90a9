"""Tests without a host: `FakeHost` implements every import with a script, and records the calls.

A call outside of `FakeHost.run`, or without a script, fails with the code `unsupported` and the
name of the missing method.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from wattle import _json, _openapi
from wattle._conversation import Conversation
from wattle._node import CONFIG, CONVERSATION, Context, Decision
from wattle._registry import HandlerEntry, NodeEntry, ReducerEntry, ToolEntry, entry_of
from wattle._tool import ToolContext, ToolOutput
from wattle.testing._fake import FakeHost
from wattle.testing._record import Logged, SqlAnswer, Statement

__all__ = [
    "FakeHost",
    "Logged",
    "SqlAnswer",
    "Statement",
    "call_tool",
    "check_openapi",
    "config_schema",
    "node_schemas",
    "reduce",
    "run_node",
    "tool_schema",
]

WRITE_OPENAPI = "WATTLE_WRITE_OPENAPI"
"""Environment variable with which `check_openapi` writes the file."""

Function = Callable[..., Any]


def run_node(node: Function, context: Context, input: Any) -> Decision:
    """Runs a node with an input, as the host does.

    For a node with a conversation, the context gets one whose messages are all in the input, unless
    it has one.
    """
    entry: NodeEntry = entry_of(node, NodeEntry)
    value = _json.to_value("the input", input)
    return entry.run(_with_conversation(entry, context, value), value)


def _with_conversation(entry: NodeEntry, context: Context, input: Any) -> Context:
    if entry.reads is None or CONVERSATION in context.extra:
        return context
    channel = entry.reads.conversation_channel(context.extra.get(CONFIG))
    if channel is None:
        return context
    messages = input.get(channel) if isinstance(input, dict) else None
    length = len(messages) if isinstance(messages, list) else 0
    copy = replace(context, extra=dict(context.extra))
    return copy.with_conversation(Conversation(channel, 0, length))


def node_schemas(node: Function) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the schemas of a node's input and updates, as the host receives them."""
    entry: NodeEntry = entry_of(node, NodeEntry)
    return entry.inputs.schema, entry.output_schema()


def config_schema(node: Function) -> dict[str, Any] | None:
    """Returns the schema of a node's configuration, if it has one."""
    entry: NodeEntry = entry_of(node, NodeEntry)
    return None if entry.config is None else entry.config.schema


def call_tool(tool: Function, context: ToolContext, arguments: Any) -> ToolOutput:
    """Calls a tool with arguments, as the host does."""
    entry: ToolEntry = entry_of(tool, ToolEntry)
    return entry.call(context, _json.to_value("the arguments", arguments))


def tool_schema(tool: Function) -> dict[str, Any]:
    """Returns the schema of a tool's arguments, as models receive it."""
    entry: ToolEntry = entry_of(tool, ToolEntry)
    return entry.inputs.schema


def reduce(reducer: Function, current: Any, updates: Iterable[Any]) -> Any:
    """Calls a reducer with a current value and updates, as the host does."""
    entry: ReducerEntry = entry_of(reducer, ReducerEntry)
    text = None if current is None else _json.write("the current value", current)
    texts = [_json.write("an update", update) for update in updates]
    return json.loads(entry.reduce(text, texts))


def check_openapi(file: str | Path, title: str, handlers: Iterable[Function]) -> None:
    """Checks that a file has the OpenAPI document of handlers.

    With the environment variable `WATTLE_WRITE_OPENAPI`, the file is written instead. Raises an
    `AssertionError` if the file is missing or has another document.
    """
    entries: list[HandlerEntry] = [entry_of(handler, HandlerEntry) for handler in handlers]
    document = _openapi.document(title, [(entry.endpoint, entry.doc) for entry in entries])
    file = Path(file)
    if WRITE_OPENAPI in os.environ:
        file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
        return
    known = json.loads(file.read_text("utf-8")) if file.is_file() else None
    if known != document:
        raise AssertionError(
            f"`{file}` does not describe the handlers; run this test with `{WRITE_OPENAPI}=1`, "
            "which writes the file"
        )
