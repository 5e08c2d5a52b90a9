"""Messages of conversations: roles, parts, images and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

from wattle import blob
from wattle.blob import BlobRef

PROVIDER_STATE = "provider_state"
"""Value of `type` in an `OtherPart` with opaque data of the provider, such as signatures."""


class Role:
    """The authors of messages. A role that this version of the SDK does not know is its name."""

    SYSTEM = "system"
    """Instructions to the model."""
    USER = "user"
    """A person."""
    ASSISTANT = "assistant"
    """The model."""
    TOOL = "tool"
    """A tool that returns a result to the model."""


@dataclass
class ImageSource:
    """Location of the data of an image."""

    kind: Literal["blob", "url", "other"]
    """`blob` for a blob with the data, `url` for a URL at which the provider can fetch it."""
    value: str
    """Reference to the blob, or the URL."""


@dataclass
class Image:
    """An image in a message."""

    source: ImageSource
    """Location of the data."""
    media_type: str
    """Media type, such as `image/png`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def blob(cls, reference: BlobRef, media_type: str) -> Self:
        """Creates an image from a blob."""
        return cls(ImageSource("blob", reference), media_type)

    @classmethod
    def url(cls, url: str, media_type: str) -> Self:
        """Creates an image from a URL that the provider of the model can reach."""
        return cls(ImageSource("url", url), media_type)

    @classmethod
    def data_url(cls, url: str) -> Self:
        """Creates an image from a data URL. Stores its data as a blob."""
        data = blob.parse_data_url(url)
        return cls.blob(blob.put(data.bytes, data.media_type), data.media_type)


@dataclass
class ToolCall:
    """A tool call that a model requests."""

    id: str
    """Id of the call, which its result must contain."""
    name: str
    """Name of the tool."""
    arguments: Any
    """Arguments as JSON."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""


@dataclass
class ToolResult:
    """The result of a tool call."""

    call_id: str
    """Id of the call to which the result belongs."""
    content: str
    """Content for the model."""
    is_error: bool = False
    """True if the tool failed."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""


@dataclass
class Reasoning:
    """Reasoning of the model. The host sends it back to providers that require it."""

    text: str
    """The reasoning."""


@dataclass
class OtherPart:
    """A part of a kind that this version of the SDK does not know.

    A part of type `PROVIDER_STATE` is sent back to the provider unchanged, together with the
    message that contained it.
    """

    value: Any
    """The part as JSON."""


Part: TypeAlias = str | Image | ToolCall | ToolResult | Reasoning | OtherPart
"""A part of a message. A text is a `str`."""


@dataclass
class Message:
    """A message of a conversation.

    >>> Message.user("hello").text()
    'hello'
    """

    role: str
    """Author of the message, see `Role`."""
    parts: list[Part]
    """Content in order."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def system(cls, text: str) -> Self:
        """Creates a message with instructions to the model."""
        return cls(Role.SYSTEM, [text])

    @classmethod
    def user(cls, part: Part) -> Self:
        """Creates a message of a person."""
        return cls(Role.USER, [part])

    @classmethod
    def assistant(cls, part: Part) -> Self:
        """Creates a message of the model."""
        return cls(Role.ASSISTANT, [part])

    @classmethod
    def tool_result(cls, call_id: str, content: str) -> Self:
        """Creates a message with the result of a tool call."""
        return cls(Role.TOOL, [ToolResult(call_id, content)])

    def text(self) -> str:
        """Returns all text parts, joined."""
        return text_of(self.parts)


def text_of(parts: Iterable[Part]) -> str:
    """Returns all text parts, joined."""
    return "".join(texts_of(parts))


def texts_of(parts: Iterable[Part]) -> list[str]:
    """Returns all text parts."""
    return [part for part in parts if isinstance(part, str)]
