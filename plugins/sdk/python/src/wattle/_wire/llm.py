"""Calls of `llm`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import llm as raw

from wattle import _json
from wattle._wire._convert import call, extra, kind, raw_extra, results, value, variant
from wattle._wire._message import part, raw_message
from wattle.blob import BlobRef
from wattle.failure import Failure
from wattle.llm import (
    Completion,
    GeneratedImage,
    ImageRequest,
    Request,
    RouteInfo,
    StreamEvent,
    ToolChoice,
    Usage,
)


def complete(request: Request) -> Completion:
    """Calls a model."""
    return _completion(call(raw.complete, _raw_request(request)))


def complete_all(requests: list[Request]) -> list[Completion | Failure]:
    """Calls several models."""
    return results(raw.complete_all([_raw_request(it) for it in requests]), _completion)


class Stream:
    """A streamed completion of the host."""

    def __init__(self, resource: raw.CompletionStream) -> None:
        """Keeps the resource of the host."""
        self._resource = resource

    def next(self) -> list[StreamEvent]:
        """Returns the next deltas; none at the end."""
        return [_event(it) for it in call(self._resource.next)]

    def finish(self) -> Completion:
        """Returns the whole completion."""
        return _completion(call(self._resource.finish))

    def close(self) -> None:
        """Drops the resource, which cancels a call that has not ended."""
        self._resource.__exit__(None, None, None)


def stream(request: Request) -> Stream:
    """Calls a model and streams its completion."""
    return Stream(call(raw.stream, _raw_request(request)))


def route(name: str) -> RouteInfo:
    """Describes a route."""
    info = call(raw.route, name)
    return RouteInfo(info.provider, info.model, info.has_fallback, extra(info.extra))


def generate_images(request: ImageRequest) -> list[GeneratedImage]:
    """Generates images."""
    images = call(
        raw.generate_images,
        raw.ImageRequest(
            request.route,
            request.prompt,
            request.count,
            request.aspect_ratio,
            raw_extra(request.extra),
        ),
    )
    return [GeneratedImage(BlobRef(it.blob), it.media_type, extra(it.extra)) for it in images]


def _raw_request(of: Request) -> raw.Request:
    schema = of.response_schema
    tools = [
        raw.ToolDefinition(
            tool.name,
            tool.description,
            _json.write("the schema of a tool", tool.arguments_schema),
            raw_extra(tool.extra),
        )
        for tool in of.tools
    ]
    fields = dict(of.extra)
    for key in ("candidate", "retries", "timeout_ms"):
        if getattr(of, key) is not None:
            fields[key] = getattr(of, key)
    if not of.repair:
        fields["repair"] = False
    return raw.Request(
        of.route,
        [raw_message(message) for message in of.messages],
        tools,
        _raw_choice(of.tool_choice),
        None
        if schema is None
        else raw.ResponseSchema(schema.name, _json.write("the schema", schema.schema)),
        of.temperature,
        of.max_output_tokens,
        of.seed,
        list(of.stop),
        raw_extra(fields),
    )


def _raw_choice(of: ToolChoice) -> Any:
    if of.kind == "tool":
        return raw.ToolChoice_Tool(of.name)
    return variant(raw, "ToolChoice", of.kind)


def _completion(of: raw.Completion) -> Completion:
    usage = of.usage
    return Completion(
        [part(it) for it in of.parts],
        value(of.structured),
        kind(of.finish_reason),
        Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_input_tokens,
            usage.reasoning_tokens,
            extra(usage.extra),
        ),
        of.model,
        extra(of.extra),
    )


def _event(of: Any) -> StreamEvent:
    match of:
        case raw.StreamEvent_Text():
            return StreamEvent("text", of.value)
        case raw.StreamEvent_Reasoning():
            return StreamEvent("reasoning", of.value)
        case raw.StreamEvent_ToolCallDelta():
            index, name, arguments = of.value
            return StreamEvent("tool_call_delta", index=index, name=name, arguments=arguments)
        case _:
            event = value(of.value)
            told = event.get("kind") if isinstance(event, dict) else None
            return StreamEvent(told if isinstance(told, str) else "other", value=event)
