"""The export `tool`."""

from __future__ import annotations

from dataclasses import asdict

from wit_world.exports import tool as raw
from wit_world.imports import types

from wattle import _json
from wattle._export._answer import answer
from wattle._registry import ToolEntry, plugin
from wattle._tool import HINTS, ToolContext, ToolHints, ToolOutput
from wattle._wire._convert import extra, raw_extra, text
from wattle._wire._message import raw_part
from wattle.failure import Failure


class Tool:
    """The tools of the plugin."""

    def list(self) -> list[raw.ToolInfo]:
        """Returns the descriptions of all tools."""
        return [_info(entry) for entry in plugin().tools.values()]

    def call(self, context: raw.CallContext, arguments: str) -> raw.ToolOutput:
        """Calls the tool that the context names."""
        return answer(lambda: _call(context, arguments))


def _info(entry: ToolEntry) -> raw.ToolInfo:
    fields = {} if entry.hints == ToolHints() else {HINTS: asdict(entry.hints)}
    return raw.ToolInfo(
        entry.name,
        entry.description,
        _json.write("the schema", entry.inputs.schema),
        entry.accepts_invalid,
        raw_extra(fields),
    )


def _call(context: raw.CallContext, arguments: str) -> raw.ToolOutput:
    entry = plugin().tools.get(context.tool)
    if entry is None:
        raise Failure.not_found(f"the plugin has no tool `{context.tool}`")
    document = _json.read("the arguments", arguments)
    return _raw_output(entry.call(_context(context), document))


def _context(of: raw.CallContext) -> ToolContext:
    return ToolContext(
        tool=of.tool,
        call_id=of.call_id,
        thread_id=of.thread_id,
        task_id=of.task_id,
        tenant=of.tenant,
        violations=list(of.violations),
        extra=extra(of.extra),
    )


def _raw_output(of: ToolOutput) -> raw.ToolOutput:
    updates = [
        types.Update(it.channel, _json.write(f"`{it.channel}`", it.value), it.overwrite)
        for it in of.updates
    ]
    return raw.ToolOutput(
        [raw_part(part) for part in of.content],
        text("the output of the tool", of.structured),
        of.is_error,
        updates,
        raw_extra(of.extra),
    )
