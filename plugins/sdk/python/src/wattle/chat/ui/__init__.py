"""Messages of the AI SDK, for an app whose page sends the whole conversation, as `useChat` does.

`read` checks the messages, `Part` parses a part, and `to_stored` converts a message to those of the
state.
"""

from wattle.chat.ui._client import CallIds, Part, ToolPart, to_stored
from wattle.chat.ui._message import Role, UiMessage
from wattle.chat.ui._read import Limits, read

__all__ = [
    "CallIds",
    "Limits",
    "Part",
    "Role",
    "ToolPart",
    "UiMessage",
    "read",
    "to_stored",
]
