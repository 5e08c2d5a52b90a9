"""Completions as the log of a thread contains them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from wattle import _schema
from wattle._completion import Completion, FinishReason, Usage
from wattle.failure import Failure
from wattle.message import Image, ImageSource, OtherPart, Part, Reasoning, ToolCall, ToolResult

REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}
"""The reasons why completions end by their names in the log."""


@dataclass
class _Completion:
    parts: list[dict[str, Any]] = field(default_factory=list)
    structured: Any = None
    finish_reason: str | dict[str, str] = "stop"
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""


@dataclass
class _ToolCall:
    id: str
    name: str
    arguments: Any = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Image:
    source: dict[str, str]
    media_type: str
    extra: dict[str, Any] = field(default_factory=dict)


class _Unknown(Exception):
    """A part or a reason is not that of a completion."""


def logged_completion(output: Any) -> Completion | None:
    """Converts the output of a model call in the log.

    Returns `None` if it is not the JSON of a completion.
    """
    try:
        logged: _Completion = _schema.decode("the completion", _Completion, output)
        parts = [_part(part) for part in logged.parts]
        reason = _reason(logged.finish_reason)
    except (Failure, _Unknown):
        return None
    known = {it.name for it in fields(_Completion)}
    extra = {name: value for name, value in output.items() if name not in known}
    usage = _usage(logged.usage)
    return Completion(parts, logged.structured, reason, usage, logged.model, extra)


def _part(part: dict[str, Any]) -> Part:
    match part:
        case {"text": str(text), **rest} if not rest:
            return text
        case {"reasoning": str(text), **rest} if not rest:
            return Reasoning(text)
        case {"tool_call": call, **rest} if not rest:
            read: _ToolCall = _schema.decode("the call", _ToolCall, call)
            return ToolCall(read.id, read.name, read.arguments, read.extra)
        case {"tool_result": result, **rest} if not rest:
            answered: ToolResult = _schema.decode("the result", ToolResult, result)
            return answered
        case {"image": image, **rest} if not rest:
            return _image(_schema.decode("the image", _Image, image))
        case {"other": value, **rest} if not rest:
            return OtherPart(value)
    raise _Unknown


def _image(image: _Image) -> Image:
    match list(image.source.items()):
        case [("blob" | "url" | "other" as kind, value)]:
            return Image(ImageSource(kind, value), image.media_type, image.extra)
    raise _Unknown


def _reason(reason: str | dict[str, str]) -> str:
    match reason:
        case str() if reason in REASONS:
            return REASONS[reason]
        case {"other": other, **rest} if not rest:
            return other
    raise _Unknown


def _usage(usage: dict[str, Any]) -> Usage:
    counts = {it.name: usage.get(it.name) for it in fields(Usage) if it.name != "extra"}
    extra = {name: value for name, value in usage.items() if name not in counts}
    return Usage(**{k: v for k, v in counts.items() if type(v) is int}, extra=extra)
