"""The common endpoints of conversations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wattle import _registry, _schema, status, web
from wattle._signature import DefinitionError
from wattle.chat._chat import AnswerRequest, Chat, ChatRequest, ThreadDocument
from wattle.chat._ended import ChatError, Reply, Waiting
from wattle.chat._list import ThreadList, TitleRequest
from wattle.web import ErrorDocument, Request, Response

_schema.prepare(
    reads=(ChatRequest, AnswerRequest, TitleRequest),
    writes=(Reply, Waiting, ChatError, ErrorDocument, ThreadDocument, ThreadList),
)

Handler: TypeAlias = Callable[[Request], Response]
"""A web handler."""

REPLIES = {200: Reply, status.ACCEPTED: Waiting}
"""The responses after a run that has ended or is interrupted."""


def _send(chat: Chat, request: Request) -> Response:
    """Sends a message to a conversation and waits for the reply."""
    return chat.wait(chat.send(request)).into_response()


def _stream(chat: Chat, request: Request) -> Response:
    """Sends a message to a conversation and streams the run: as the host's own events, or with
    `?format=ai-sdk` as a message of the AI SDK.
    """
    return chat.stream(request)


def _list(chat: Chat, request: Request) -> Response:
    """Lists the conversations, newest update first."""
    return Response.json(200, chat.list(request))


def _show(chat: Chat, request: Request) -> Response:
    """Responds with the messages and the pending questions of a conversation. Messages of the
    active run are omitted, because its stream has them from the beginning.
    """
    return Response.json(200, chat.show(request.param("id")))


def _rename(chat: Chat, request: Request) -> Response:
    """Sets the title of a conversation."""
    chat.rename(request.param("id"), request)
    return Response.empty(status.NO_CONTENT)


def _delete(chat: Chat, request: Request) -> Response:
    """Deletes a conversation. Its active run is cancelled first."""
    chat.delete(request.param("id"))
    return Response.empty(status.NO_CONTENT)


def _join(chat: Chat, request: Request) -> Response:
    """Streams the active run of a conversation from its beginning: as a message of the AI SDK, or
    with `?format=sse` as the host's own events. Responds with 204 if there is none.
    """
    return chat.join(request.param("id"), request)


def _cancel(chat: Chat, request: Request) -> Response:
    """Cancels the active run of a conversation, if there is one, and responds with the
    conversation.
    """
    return Response.json(200, chat.cancel(request.param("id")))


def _answer(chat: Chat, request: Request) -> Response:
    """Answers a pending question of a conversation and waits for the reply."""
    return chat.answer(request.param("id"), request).into_response()


@dataclass(frozen=True)
class _Endpoint:
    work: Callable[[Chat, Request], Response]
    method: str
    path: str
    types: dict[str, Any] = field(default_factory=dict)


ENDPOINTS = {
    "send": _Endpoint(
        _send, "POST", "/chat", {"body": ChatRequest, "returns": REPLIES, "error": ChatError}
    ),
    "stream": _Endpoint(
        _stream,
        "POST",
        "/chat/stream",
        {"query": {"format": str | None}, "body": ChatRequest, "events": Any},
    ),
    "list": _Endpoint(
        _list,
        "GET",
        "/threads",
        {
            "query": {"limit": int | None, "after": str | None, "text": str | None},
            "returns": ThreadList,
        },
    ),
    "show": _Endpoint(_show, "GET", "/threads/{id}", {"returns": ThreadDocument}),
    "rename": _Endpoint(
        _rename,
        "PATCH",
        "/threads/{id}",
        {"body": TitleRequest, "returns": {status.NO_CONTENT: None}},
    ),
    "delete": _Endpoint(_delete, "DELETE", "/threads/{id}", {"returns": {status.NO_CONTENT: None}}),
    "join": _Endpoint(
        _join,
        "GET",
        "/threads/{id}/stream",
        {
            "query": {"format": str | None},
            "events": Any,
            "returns": {status.NO_CONTENT: None},
        },
    ),
    "cancel": _Endpoint(_cancel, "POST", "/threads/{id}/cancel", {"returns": ThreadDocument}),
    "answer": _Endpoint(
        _answer,
        "POST",
        "/threads/{id}/answers",
        {"body": AnswerRequest, "returns": REPLIES, "error": ChatError},
    ),
}
"""The endpoints by their names."""


def chat_endpoints(chat: Chat, path: str, *names: str) -> dict[str, Handler]:
    """Declares the endpoints of the conversations of a `Chat`, below a path.

    Each is a web handler. `names` are those that the app offers, by default all of them. An app
    that needs another form of an endpoint leaves it out and declares the endpoint itself. Returns
    the handlers by their names.

    | name | endpoint | request | responses |
    |---|---|---|---|
    | `send` | `POST /chat` | `ChatRequest` | `Reply`; 202 with `Waiting` |
    | `stream` | `POST /chat/stream` | `ChatRequest`, `?format=` | see `Chat.stream` |
    | `list` | `GET /threads` | `?limit=&after=&text=` | `ThreadList` |
    | `show` | `GET /threads/{id}` | | `ThreadDocument` |
    | `rename` | `PATCH /threads/{id}` | `TitleRequest` | 204 |
    | `delete` | `DELETE /threads/{id}` | | 204 |
    | `join` | `GET /threads/{id}/stream` | `?format=` | see `Chat.join`; 204 |
    | `cancel` | `POST /threads/{id}/cancel` | | `ThreadDocument` |
    | `answer` | `POST /threads/{id}/answers` | `AnswerRequest` | those of `send` |

    A refused request has the body `{"error": "..."}` with one of the `Texts`. A failed run has the
    status 502 and a `ChatError` with `Texts.failed`. Each response has the header
    `cache-control: no-store`, because a conversation changes at any time.

    >>> from wattle._registry import separate_plugin
    >>> from wattle.testing import FakeHost
    >>> with separate_plugin(), FakeHost() as host:
    ...     handlers = chat_endpoints(Chat("notes", title_chars=80), "/api", "stream", "show")
    ...     request = Request("POST", "/api/chat/stream", body=b'{"message": "hi"}')
    ...     response = handlers["stream"](request)
    >>> response.status, host.started[0].graph
    (200, 'notes')
    """
    unknown = [name for name in names if name not in ENDPOINTS]
    if unknown:
        known = "`, `".join(ENDPOINTS)
        raise DefinitionError(f"`{unknown[0]}` is no endpoint of a chat; expected one of `{known}`")
    return {name: _declare(chat, path, name, ENDPOINTS[name]) for name in names or ENDPOINTS}


def _declare(chat: Chat, path: str, name: str, endpoint: _Endpoint) -> Handler:
    def handle(request: Request) -> Response:
        response = web.respond(request, lambda: endpoint.work(chat, request))
        return response.with_header("cache-control", "no-store")

    handle.__name__ = handle.__qualname__ = name
    handle.__doc__ = endpoint.work.__doc__
    types = {"error": ErrorDocument, **endpoint.types}
    return _registry.handler(endpoint.method, f"{path}{endpoint.path}", **types)(handle)
