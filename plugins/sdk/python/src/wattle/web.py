"""HTTP endpoints of an app: requests and responses.

`respond` reports failures in the form of the app; without it, a failure with a status is an
`application/problem+json` document. `Request.page` is for lists, and `Request.has_tag` for entity
tags.

Calls of a web handler are not journaled. Work that must survive a crash belongs into a run that the
handler starts.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

from wattle import _json, log, status
from wattle import code as codes
from wattle._request import PAGE_BYTES, PageQuery, Pairs, Request
from wattle.blob import BlobRef
from wattle.failure import Failure

__all__ = [
    "BAD_REQUEST",
    "Body",
    "ErrorDocument",
    "ErrorForm",
    "HandOff",
    "OtherBody",
    "PAGE_BYTES",
    "PageQuery",
    "Pairs",
    "Request",
    "Response",
    "StreamFormat",
    "refuse",
    "respond",
    "status",
]

BAD_REQUEST = status.BAD_REQUEST
"""Status of the response to an invalid request."""

CODES = {
    status.NOT_FOUND: codes.NOT_FOUND,
    status.CONFLICT: codes.CONFLICT,
    status.PRECONDITION_FAILED: codes.CONFLICT,
    status.GONE: codes.EXPIRED,
    status.PAYLOAD_TOO_LARGE: codes.LIMIT,
    status.INTERNAL_SERVER_ERROR: codes.INTERNAL,
    status.BAD_GATEWAY: codes.UNAVAILABLE,
}
"""The codes of refused requests by their statuses."""


@dataclass(frozen=True)
class StreamFormat:
    """The format of a stream."""

    SSE: ClassVar[StreamFormat]
    """Server-sent events in the format of the host."""
    AI_SDK: ClassVar[StreamFormat]
    """The UI message stream of the AI SDK."""
    AG_UI: ClassVar[StreamFormat]
    """AG-UI."""

    kind: str
    """Kind of the format."""
    name: str = ""
    """Name of a custom format."""

    @classmethod
    def custom(cls, name: str) -> Self:
        """Returns a format that the app defines in a file with this name."""
        return cls("custom", name)


StreamFormat.SSE = StreamFormat("sse")
StreamFormat.AI_SDK = StreamFormat("ai-sdk")
StreamFormat.AG_UI = StreamFormat("ag-ui")


@dataclass
class HandOff:
    """A hand-off: the host takes over the response and streams the events of a run."""

    thread_id: str
    """Id of the thread."""
    format: StreamFormat = StreamFormat.SSE
    """Format of the stream."""
    run_id: str | None = None
    """Id of the run; the newest run of the thread if `None`."""
    after: int | None = None
    """Sequence number after which the stream begins; `None` begins at the first event."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def cancel_on_disconnect(self, grace_ms: int) -> Self:
        """Cancels the run if its last client disconnects.

        Another client may connect within `grace_ms` milliseconds, at most 10 minutes.
        """
        self.extra["on_disconnect"] = "cancel"
        self.extra["grace_ms"] = grace_ms
        return self

    def nodes(self, *nodes: str) -> Self:
        """Selects the nodes whose model calls are shown, in formats that show a conversation."""
        self.extra["nodes"] = list(nodes)
        return self


@dataclass
class OtherBody:
    """A body of a kind that this version of the SDK does not know."""

    value: Any
    """The body as JSON."""


Body: TypeAlias = builtins.bytes | BlobRef | HandOff | OtherBody | None
"""The body of a response: bytes, a blob, a hand-off, or `None` for no body."""


@dataclass
class Response:
    """An HTTP response.

    >>> Response.json(200, {"id": 7}).json_body()["id"]
    7
    """

    status: int
    """Status code, such as 200."""
    headers: Pairs = field(default_factory=list)
    """Headers in order."""
    body: Body = None
    """The body."""

    @classmethod
    def empty(cls, status: int) -> Self:
        """Creates a response without a body."""
        return cls(status)

    @classmethod
    def json(cls, status: int, value: Any) -> Self:
        """Creates a response with a JSON body."""
        text = _json.write("the response body", value)
        return cls._of(status, "application/json", text.encode())

    @classmethod
    def text(cls, status: int, text: str) -> Self:
        """Creates a response with a text body."""
        return cls._of(status, "text/plain; charset=utf-8", text.encode())

    @classmethod
    def bytes(cls, content_type: str, data: builtins.bytes) -> Self:
        """Creates a response with a body of bytes and status 200."""
        return cls._of(200, content_type, data)

    @classmethod
    def blob(cls, reference: BlobRef) -> Self:
        """Creates a response with a blob and status 200.

        The host sends the blob with its media type, and its bytes do not pass through the plugin.
        """
        return cls(200, body=reference)

    @classmethod
    def hand_off(cls, thread_id: str, format: StreamFormat = StreamFormat.SSE) -> Self:
        """Creates a hand-off of the newest run of a thread, with status 200."""
        return cls.hand_off_from(HandOff(thread_id, format))

    @classmethod
    def hand_off_from(cls, hand_off: HandOff) -> Self:
        """Creates a response with a hand-off and status 200."""
        return cls(200, body=hand_off)

    @classmethod
    def problem(cls, status: int, failure: Failure) -> Self:
        """Creates a response with a failure as an `application/problem+json` body.

        >>> Response.problem(404, Failure.not_found("no item 7")).json_body()["detail"]
        'no item 7'
        """
        problem = {
            "status": status,
            "code": failure.code,
            "detail": failure.message,
            "details": failure.details,
        }
        text = _json.write("the problem", problem)
        return cls._of(status, "application/problem+json", text.encode())

    def with_header(self, name: str, value: str) -> Self:
        """Adds a header."""
        self.headers.append((name, value))
        return self

    def with_status(self, status: int) -> Self:
        """Sets the status."""
        self.status = status
        return self

    def json_body(self) -> Any:
        """Parses the body as JSON, for tests."""
        if not isinstance(self.body, builtins.bytes):
            raise Failure.invalid("the response has no body of bytes")
        return _json.read("the response body", self.body)

    @classmethod
    def _of(cls, status: int, content_type: str, data: builtins.bytes) -> Self:
        return cls(status, [("content-type", content_type)], data)


class ErrorForm(ABC):
    """The form in which an app reports failures to its clients.

    It is the body of the response, and its status. `ErrorDocument` is a common one.

    >>> @dataclass
    ... class Refusal(ErrorForm):
    ...     code: str
    ...     message: str
    ...     @classmethod
    ...     def new(cls, request, status, failure):
    ...         return cls(failure.code, failure.message)
    >>> def work():
    ...     raise refuse(status.NOT_FOUND, "no item 7")
    >>> response = respond(Request("GET", "/api/items/7"), work, Refusal)
    >>> response.status, response.json_body()
    (404, {'code': 'not-found', 'message': 'no item 7'})
    """

    @classmethod
    @abstractmethod
    def new(cls, request: Request, status: int, failure: Failure) -> Self:
        """Creates the body of the response to a failed request."""

    @classmethod
    def status_of(cls, failure: Failure) -> int | None:
        """Returns the status of the response; by default that of `Failure.with_status`.

        A failure without a status goes to the host, which responds with status 500.
        """
        return failure.status()


@dataclass
class ErrorDocument(ErrorForm):
    """The reason of a refused request, for users."""

    # The schema of each app that names this type has the line above as its description.
    error: str

    @classmethod
    def new(cls, request: Request, status: int, failure: Failure) -> Self:
        """Creates the document with the message of the failure."""
        return cls(failure.message)


def respond(
    request: Request, work: Callable[[], Response], form: type[ErrorForm] = ErrorDocument
) -> Response:
    """Responds to a request with the response that `work` returns.

    A failure with a status becomes a response in the form. One with status 500 is logged, because
    clients cannot act on it. Raises failures of `work` for which the form has no status.

    >>> def show(request: Request) -> Response:
    ...     def work() -> Response:
    ...         id = request.param("id", int)
    ...         if id > 9:
    ...             raise refuse(status.NOT_FOUND, f"there is no item {id}")
    ...         return Response.json(200, {"id": id})
    ...     return respond(request, work)
    >>> response = show(Request("GET", "/api/items/12", params=[("id", "12")]))
    >>> response.status, response.json_body()
    (404, {'error': 'there is no item 12'})
    """
    try:
        return work()
    except Failure as failure:
        code = form.status_of(failure)
        if code is None:
            raise
        if code == status.INTERNAL_SERVER_ERROR:
            log.error(f"a request failed: {failure}")
        return Response.json(code, form.new(request, code, failure))


def refuse(status: int, message: str) -> Failure:
    """Creates the failure for a refused request. Its code is the one that fits the status.

    >>> failure = refuse(status.CONFLICT, "the order was already sent")
    >>> failure.status(), failure.code
    (409, 'conflict')
    """
    return Failure(CODES.get(status, codes.INVALID), message).with_status(status)
