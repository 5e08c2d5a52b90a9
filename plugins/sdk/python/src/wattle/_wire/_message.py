"""Messages and their parts."""

from __future__ import annotations

from typing import Any

from wit_world.imports import types as raw

from wattle import _json
from wattle._wire._convert import extra, raw_extra, value, variant
from wattle.message import (
    Image,
    ImageSource,
    Message,
    OtherPart,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)


def raw_message(of: Message) -> raw.Message:
    """Converts a message for the host."""
    role = variant(raw, "Role", of.role)
    return raw.Message(role, [raw_part(part) for part in of.parts], raw_extra(of.extra))


def raw_part(of: Part) -> Any:
    """Converts a part for the host."""
    match of:
        case str():
            return raw.Part_Text(of)
        case Image():
            kind = of.source.kind.capitalize()
            source = getattr(raw, f"ImageSource_{kind}")(str(of.source.value))
            return raw.Part_Image(raw.Image(source, of.media_type, raw_extra(of.extra)))
        case ToolCall():
            arguments = _json.write("the arguments of a tool call", of.arguments)
            call = raw.ToolCall(of.id, of.name, arguments, raw_extra(of.extra))
            return raw.Part_ToolCall(call)
        case ToolResult():
            result = raw.ToolResult(of.call_id, of.content, of.is_error, raw_extra(of.extra))
            return raw.Part_ToolResult(result)
        case Reasoning():
            return raw.Part_Reasoning(of.text)
        case OtherPart():
            return raw.Part_Other(_json.write("a part of a message", of.value))


def part(of: Any) -> Part:
    """Converts a part from the host."""
    match of:
        case raw.Part_Text():
            return str(of.value)
        case raw.Part_Image():
            return _image(of.value)
        case raw.Part_ToolCall():
            call = of.value
            return ToolCall(call.id, call.name, value(call.arguments), extra(call.extra))
        case raw.Part_ToolResult():
            result = of.value
            return ToolResult(result.call_id, result.content, result.is_error, extra(result.extra))
        case raw.Part_Reasoning():
            return Reasoning(of.value)
        case _:
            return OtherPart(value(of.value))


def _image(of: raw.Image) -> Image:
    match of.source:
        case raw.ImageSource_Blob():
            source = ImageSource("blob", of.source.value)
        case raw.ImageSource_Url():
            source = ImageSource("url", of.source.value)
        case _:
            source = ImageSource("other", of.source.value)
    return Image(source, of.media_type, extra(of.extra))
