"""The export `web`."""

from __future__ import annotations

from typing import Any

from wit_world.exports import web as raw

from wattle import _json, _openapi
from wattle._export._answer import answer
from wattle._registry import plugin
from wattle._wire._convert import extra, raw_extra, variant
from wattle.blob import BlobRef
from wattle.failure import Failure
from wattle.web import Body, HandOff, OtherBody, Request, Response

OPENAPI = "openapi"
"""Extension field of a route that contains the description of its endpoint."""


class Web:
    """The endpoints of the plugin."""

    def routes(self) -> list[raw.Route]:
        """Returns all endpoints with their descriptions."""
        entries = list(plugin().handlers.values())
        described = _openapi.routes((entry.endpoint, entry.doc) for entry in entries)
        return [
            raw.Route(entry.endpoint.method, entry.endpoint.path, raw_extra({OPENAPI: it}))
            for entry, it in zip(entries, described, strict=True)
        ]

    def handle(self, request: raw.Request) -> raw.Response:
        """Handles a request with the endpoint for its method and route."""
        return answer(lambda: _handle(request))


def _handle(request: raw.Request) -> raw.Response:
    entry = plugin().handlers.get((request.method, request.route))
    if entry is None:
        raise Failure.not_found(f"the plugin has no endpoint `{request.method} {request.route}`")
    return _raw_response(entry.handle(_request(request)))


def _request(of: raw.Request) -> Request:
    return Request(
        of.method,
        of.path,
        of.route,
        list(of.params),
        list(of.query),
        list(of.headers),
        of.body,
        of.tenant,
        extra(of.extra),
    )


def _raw_response(of: Response) -> raw.Response:
    return raw.Response(of.status, list(of.headers), _raw_body(of.body))


def _raw_body(of: Body) -> Any:
    match of:
        case None:
            return raw.Body_Empty()
        case BlobRef():
            return raw.Body_Blob(str(of))
        case HandOff():
            return raw.Body_HandOff(_raw_hand_off(of))
        case OtherBody():
            return raw.Body_Other(_json.write("the response body", of.value))
        case _:
            return raw.Body_Bytes(bytes(of))


def _raw_hand_off(of: HandOff) -> raw.HandOff:
    if of.format.kind == "custom":
        format = raw.StreamFormat_Custom(of.format.name)
    else:
        format = variant(raw, "StreamFormat", of.format.kind)
    return raw.HandOff(of.thread_id, of.run_id, format, of.after, raw_extra(of.extra))
