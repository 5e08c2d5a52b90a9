"""Calls of tools that other plugins and MCP servers provide. See `wattle.tool` for providing tools.

A tool has a bare name (`add`) and a tool reference (`calculator/add`, `mcp:graph/search`). The
reference is needed only if two granted tools have the same bare name. The host checks the arguments
against the schema of the tool before it calls the tool. A call fails if the tool traps, exceeds a
limit or is not granted. An error that the model should read is an output with `is_error`.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, cast

from wattle import _host
from wattle._tool import ToolInfo, ToolOutput
from wattle.failure import Failure
from wattle.message import ToolCall


@dataclass
class Call:
    """A tool call."""

    tool: str
    """Bare name or reference of the tool."""
    arguments: Any
    """The arguments."""
    call_id: str = ""
    """Id of the call. If it is empty, the host generates one."""
    timeout_ms: int | None = None
    """Timeout of the call in milliseconds; `None` selects the operator's limit."""
    state: dict[str, Any] | None = None
    """State that the tool can see, as an object of channel values, see `ToolContext.state`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def from_request(cls, call: ToolCall) -> Self:
        """Converts a tool call that a model requests."""
        return cls(call.name, call.arguments, call.id)

    def call(self) -> ToolOutput:
        """Calls the tool and waits for its output."""
        return cast(ToolOutput, _host.interface("tools").call(self))


@dataclass
class Missing:
    """A tool source whose tools could not be listed."""

    source: str
    """Prefix of the references to its tools, such as `mcp:graph`."""
    failure: Failure
    """Reason why the tools could not be listed."""


@dataclass
class Listing:
    """The granted tools and the unavailable tool sources."""

    tools: builtins.list[ToolInfo] = field(default_factory=builtins.list)
    """Tools of the available sources."""
    missing: builtins.list[Missing] = field(default_factory=builtins.list)
    """Tool sources whose tools could not be listed."""


def list() -> builtins.list[ToolInfo]:
    """Lists the granted tools. Omits the tools of unavailable sources, which `listing` reports."""
    return listing().tools


def listing() -> Listing:
    """Lists the granted tools, and the tool sources whose tools could not be listed."""
    listing = Listing()
    for info in _host.interface("tools").list():
        place = info.place()
        if place is None:
            listing.tools.append(info)
        else:
            listing.missing.append(Missing(*place))
    return listing


def call_all(calls: Iterable[Call]) -> builtins.list[ToolOutput | Failure]:
    """Calls several tools concurrently. Returns the results in the order of the calls.

    The result of a call that fails is its `Failure`, which is not raised.
    """
    results = _host.interface("tools").call_all(builtins.list(calls))
    return cast(builtins.list[ToolOutput | Failure], results)
