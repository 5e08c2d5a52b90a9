"""The channels that a node reads, and the conversation that it continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from wattle import _json
from wattle.failure import Failure


@dataclass(frozen=True)
class FromConfig:
    """The channels that the configuration of a node has under a key: a name or a list of names."""

    key: str
    """Key of the configuration."""
    default: str | None = None
    """Name of the channel if the configuration does not have the key; `None` for no channel."""


ChannelRef: TypeAlias = str | FromConfig
"""A reference to channels of the graph that runs a node: a name, or a key of its configuration."""


@dataclass(frozen=True)
class Reads:
    """The channels that a node reads, for `@node(reads=...)`.

    Without it, a node reads the channels that are its parameters. A node whose configuration names
    its channels declares them with a `FromConfig` for each key, and gets them as `**channels`.

    >>> MESSAGES = FromConfig("messages", default="messages")
    >>> reads = Reads(channels=(MESSAGES, "title"), conversation=MESSAGES)
    """

    channels: Sequence[ChannelRef] | None = None
    """The channels, in place of those that are parameters.

    What is no channel of the graph is left out.
    """
    conversation: ChannelRef | None = None
    """The channel with the conversation of the node, which must be one that it reads.

    The input has only the current turn of it, see `Context.conversation`, unless several of
    `channels` name it.
    """

    def describe(self) -> dict[str, Any]:
        """Returns the declaration in the format of the host."""
        declared: dict[str, Any] = {}
        if self.channels is not None:
            declared["channels"] = [_described(it) for it in self.channels]
        if self.conversation is not None:
            declared["conversation"] = _described(self.conversation)
        return declared

    def conversation_channel(self, config: Any) -> str | None:
        """Returns the name of the channel with the conversation, for a node with a configuration.

        Returns `None` if there is not exactly one channel.
        """
        if not isinstance(self.conversation, FromConfig):
            return self.conversation
        name = config.get(self.conversation.key) if isinstance(config, dict) else None
        name = self.conversation.default if name is None else name
        return name if isinstance(name, str) else None


@dataclass(frozen=True)
class Conversation:
    """The conversation of a node: a list of messages in a channel.

    The input of the node has only the messages of the current turn: those from the last user
    message on, or from an earlier message with a tool call that has no result. A request gives all
    of them to a model with `llm.Request.history`.
    """

    channel: str
    """Name of the channel, which is also the name of the field of the input."""
    start: int
    """Position of the first message that the input has."""
    length: int
    """Number of all messages."""

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Reads the conversation in the format of the host."""
        try:
            return cls(value["channel"], value["from"], value["length"])
        except (KeyError, TypeError):
            raise Failure.invalid("the conversation in the context is invalid") from None

    def to_json(self) -> dict[str, Any]:
        """Returns the conversation in the format of the host."""
        return {"channel": self.channel, "from": self.start, "length": self.length}


def history(
    conversation: Conversation,
    at: int,
    begin: int | str,
    until: int | None,
    append: Sequence[Any],
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Returns a history in the format of the host."""
    start = {"after": begin} if isinstance(begin, str) else begin
    document: dict[str, Any] = {"channel": conversation.channel, "at": at, "from": start}
    if until is not None:
        document["to"] = until
    if append:
        document["append"] = _json.to_value("the messages of the history", list(append))
    if names:
        document["names"] = dict(names)
    return document


def _described(channel: ChannelRef) -> dict[str, Any]:
    if isinstance(channel, str):
        return {"channel": channel}
    default = {} if channel.default is None else {"default": channel.default}
    return {"config": channel.key, **default}
