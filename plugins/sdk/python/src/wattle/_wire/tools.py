"""Calls of `tools`."""

from __future__ import annotations

import builtins

from wit_world.imports import tool as raw_tool
from wit_world.imports import tools as raw

from wattle import _json
from wattle._node import Update
from wattle._tool import ToolInfo, ToolOutput
from wattle._wire import _convert
from wattle._wire._convert import extra, raw_extra, results, value
from wattle._wire._message import part
from wattle.failure import Failure
from wattle.tools import Call


def list() -> builtins.list[ToolInfo]:
    """Lists the granted tools."""
    return [_info(info) for info in _convert.call(raw.list)]


def call(of: Call) -> ToolOutput:
    """Calls a tool."""
    return _output(_convert.call(raw.call, _raw_request(of)))


def call_all(calls: builtins.list[Call]) -> builtins.list[ToolOutput | Failure]:
    """Calls several tools."""
    return results(raw.call_all([_raw_request(it) for it in calls]), _output)


def _raw_request(of: Call) -> raw.Request:
    arguments = _json.write("the arguments", of.arguments)
    fields = of.extra if of.state is None else {**of.extra, "state": of.state}
    return raw.Request(of.tool, of.call_id, arguments, of.timeout_ms, raw_extra(fields))


def _info(of: raw_tool.ToolInfo) -> ToolInfo:
    schema = value(of.arguments_schema)
    return ToolInfo(of.name, of.description, schema, of.accepts_invalid, extra(of.extra))


def _output(of: raw_tool.ToolOutput) -> ToolOutput:
    updates = [Update(it.channel, value(it.value), it.overwrite) for it in of.updates]
    return ToolOutput(
        [part(it) for it in of.content],
        value(of.structured),
        of.is_error,
        updates,
        extra(of.extra),
    )
