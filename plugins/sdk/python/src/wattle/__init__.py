"""The Python SDK for Wattle plugins: graph nodes, tools, reducers and HTTP endpoints.

The modules `llm`, `http`, `sql`, `interrupt`, `tools`, `tenants`, `runs`, `memory`, `blob`,
`clock`, `random`, `emit`, `log` and `settings` are the only access to anything outside. A component
imports only the interfaces whose modules the plugin imports. `wattle.testing` has a host for tests.
"""

from wattle._conversation import ChannelRef, Conversation, FromConfig, Reads
from wattle._node import END, Context, Decision, NodeError, Outcome, Send, Update
from wattle._registry import handler, manifest, node, reducer, tool
from wattle._signature import DefinitionError
from wattle._tool import ToolContext, ToolHints, ToolInfo, ToolOutput, Unchecked
from wattle.blob import BlobRef
from wattle.failure import Failure
from wattle.message import Image, Message, Part, Role
from wattle.web import Request, Response, StreamFormat

__all__ = [
    "BlobRef",
    "ChannelRef",
    "Context",
    "Conversation",
    "Decision",
    "DefinitionError",
    "END",
    "Failure",
    "FromConfig",
    "Image",
    "Message",
    "NodeError",
    "Outcome",
    "Part",
    "Reads",
    "Request",
    "Response",
    "Role",
    "Send",
    "StreamFormat",
    "ToolContext",
    "ToolHints",
    "ToolInfo",
    "ToolOutput",
    "Unchecked",
    "Update",
    "handler",
    "manifest",
    "node",
    "reducer",
    "tool",
]
