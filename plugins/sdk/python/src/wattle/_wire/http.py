"""Calls of `http`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import http as raw

from wattle._wire._convert import call, extra, raw_extra, results
from wattle.blob import BlobRef
from wattle.failure import Failure
from wattle.http import Body, Request, Response


def send(request: Request) -> Response:
    """Sends a request."""
    return _response(call(raw.send, _raw_request(request)))


def send_all(requests: list[Request]) -> list[Response | Failure]:
    """Sends several requests."""
    return results(raw.send_all([_raw_request(request) for request in requests]), _response)


def _raw_request(of: Request) -> raw.Request:
    fields = {**of.extra, "delay_ms": of.delay_ms} if of.delay_ms > 0 else of.extra
    return raw.Request(
        of.method.upper(),
        of.url,
        list(of.headers),
        _raw_body(of.body),
        of.timeout_ms,
        of.idempotency_key,
        raw_extra(fields),
    )


def _raw_body(of: Body) -> Any:
    match of:
        case None:
            return raw.Body_Empty()
        case BlobRef():
            return raw.Body_Blob(str(of))
        case str():
            return raw.Body_Text(of)
        case _:
            return raw.Body_Bytes(bytes(of))


def _response(of: raw.Response) -> Response:
    return Response(of.status, of.body, list(of.headers), of.url, extra(of.extra))
