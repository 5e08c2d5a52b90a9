"""Messages of the state as messages of the AI SDK, which `useChat` shows.

Each message of the user is followed by one message of the assistant with texts and tool calls, as
in the host's stream of the format `StreamFormat.AI_SDK`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wattle.chat import _stored
from wattle.chat._stored import Stored, ToolCall
from wattle.chat.ui import _part
from wattle.chat.ui._message import Role, UiMessage


def of_state(channel: Any, whole: bool, unfinished: str) -> list[UiMessage]:
    """Converts the value of a channel with the reducer `messages`. Invalid messages are skipped.

    If `whole` is false, the messages after the last one of the user are omitted: the stream of an
    active run has them from its beginning. `unfinished` is the error of a tool call without a
    result, for users.
    """
    messages = _stored.read(channel)
    if not whole:
        messages = messages[: _stored.last_user(messages)]
    shown: list[UiMessage] = []
    for turn in _turns(messages):
        if turn[0].is_user():
            user, *turn = turn
            shown.append(UiMessage(user.id, Role.USER, [_part.user_text(user.text())]))
        shown.extend(_assistant(turn, unfinished))
    return shown


def _turns(messages: list[Stored]) -> Iterator[list[Stored]]:
    """Returns the messages in groups, each of which begins with one of the user."""
    turn: list[Stored] = []
    for message in messages:
        if message.is_user() and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _assistant(messages: list[Stored], unfinished: str) -> Iterator[UiMessage]:
    """Returns one message for all messages that follow a message of the user."""
    turns = [message for message in messages if message.is_assistant()]
    if turns:
        parts = [part for turn in turns for part in _parts(turn, messages, unfinished)]
        yield UiMessage(turns[0].id, Role.ASSISTANT, parts)


def _parts(turn: Stored, messages: list[Stored], unfinished: str) -> Iterator[dict[str, Any]]:
    """Returns the parts of a model turn, with the results of its tool calls."""
    yield _part.step_start()
    if turn.text():
        yield _part.assistant_text("text", turn.text())
    for call in turn.tool_calls:
        yield _tool(call, messages, unfinished)


def _tool(call: ToolCall, messages: list[Stored], unfinished: str) -> dict[str, Any]:
    """Returns a tool call with its result, or with an error if it has no result."""
    results = (it for it in messages if it.tool_call_id == call.id and it.is_tool())
    result = next(results, None)
    if result is None:
        return _part.failed(call, unfinished)
    if result.status == "error":
        return _part.failed(call, result.text())
    return _part.succeeded(call, result.result())
