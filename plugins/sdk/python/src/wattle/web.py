"""HTTP endpoints of an app: requests and responses.

Calls of a web handler are not journaled. Work that must survive a crash belongs into a run that the
handler starts.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias, TypeVar, overload

from wattle import _json, _schema
from wattle.blob import BlobRef
from wattle.failure import Failure

BAD_REQUEST = 400
"""Status of the response to an invalid request."""

T = TypeVar("T")

Pairs: TypeAlias = list[tuple[str, str]]
"""Names and values in order. A name may be repeated."""


@dataclass
class Request:
    """An HTTP request."""

    method: str
    """Method in upper case, such as `GET`."""
    path: str
    """Path relative to the mount of the app."""
    route: str = ""
    """Pattern of the matching route, such as `/api/items/{id}`."""
    params: Pairs = field(default_factory=list)
    """Path parameters, percent-decoded."""
    query_params: Pairs = field(default_factory=list)
    """Query parameters in order, percent-decoded."""
    headers: Pairs = field(default_factory=list)
    """Headers with names in lower case. Does not contain credentials for the host's API."""
    body: builtins.bytes = b""
    """The body."""
    tenant: str | None = None
    """Tenant of the request, if it has one."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @overload
    def json(self, of: type[T]) -> T: ...

    @overload
    def json(self, of: Any = None) -> Any: ...

    def json(self, of: Any = None) -> Any:
        """Parses the JSON body as a type.

        Raises `invalid` with status 400 if the body is not JSON or does not fit the type. A handler
        that raises this failure responds with status 400.
        """
        what = "the request body"
        try:
            return _schema.decode(what, of, _json.read(what, self.text()))
        except Failure as failure:
            raise failure.with_status(BAD_REQUEST) from None

    def text(self) -> str:
        """Returns the body as text. Raises `invalid` with status 400 if it is not UTF-8."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            failure = Failure.invalid(f"the request body is not UTF-8: {error}")
            raise failure.with_status(BAD_REQUEST) from None

    @overload
    def param(self, name: str) -> str: ...

    @overload
    def param(self, name: str, of: Callable[[str], T]) -> T: ...

    def param(self, name: str, of: Callable[[str], Any] = str) -> Any:
        """Parses a path parameter as a type, such as `int`.

        Raises `invalid` with status 400 if the route has no such parameter, or if its value cannot
        be parsed.

        >>> Request("GET", "/items/7", params=[("id", "7")]).param("id", int)
        7
        """
        text = _find(self.params, name)
        if text is None:
            failure = Failure.invalid(f"route `{self.route}` has no parameter `{name}`")
            raise failure.with_status(BAD_REQUEST)
        try:
            return of(text)
        except ValueError:
            failure = Failure.invalid(f"path parameter `{name}` has the invalid value `{text}`")
            raise failure.with_status(BAD_REQUEST) from None

    def query(self, name: str) -> str | None:
        """Returns the first query parameter with a name."""
        return _find(self.query_params, name)

    def header(self, name: str) -> str | None:
        """Returns the first header with a name, in upper or lower case."""
        return _find(self.headers, name.lower())


def _find(pairs: Pairs, name: str) -> str | None:
    return next((value for key, value in pairs if key == name), None)


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
