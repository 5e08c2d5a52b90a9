"""Outbound HTTP requests to hosts that the operator granted.

The host replaces `{{secret:NAME}}` in a header value, the query or a text body when it sends the
request, and only for granted hosts. The plugin itself never has the value of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, TypeVar, cast, overload
from urllib.parse import quote

from wattle import _host, _json, _schema
from wattle import code as codes
from wattle.blob import BlobRef
from wattle.failure import Failure

QUOTED_CHARS = 200
"""Maximum length in characters of the body's excerpt in a failure message."""

SECRET = re.compile(r"\{\{secret:[^{}&#]*\}\}")
"""A placeholder of a secret, whose braces must not be encoded."""

T = TypeVar("T")

Body: TypeAlias = str | bytes | BlobRef | None
"""The body of a request: text, in which placeholders of secrets are replaced, bytes, or a blob."""


@dataclass
class Request:
    """A request.

    >>> Request.get("https://api.example.com/rates").query("base", "EUR").url
    'https://api.example.com/rates?base=EUR'
    """

    method: str
    """Method in upper case."""
    url: str
    """Absolute URL with the scheme `https` or `http`."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers in order."""
    body: Body = None
    """The body. The bytes of a blob do not pass through the plugin."""
    timeout_ms: int | None = None
    """Timeout of the whole exchange in milliseconds. The operator's limit is the maximum."""
    idempotency_key: str | None = None
    """Value of the header `Idempotency-Key`.

    With the header, the request is an idempotent call: the host may repeat it after a crash. The
    service must support the header.
    """
    delay_ms: int = 0
    """Delay in milliseconds before the host sends the request, to back off from a busy service.

    A plugin itself cannot wait. The host waits at most ten seconds. The delay counts toward the
    timeout of the node.
    """
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def __post_init__(self) -> None:
        self.method = self.method.upper()

    @classmethod
    def get(cls, url: str, **fields: Any) -> Self:
        """Creates a `GET` request. `fields` are those of the request, such as `timeout_ms`."""
        return cls("GET", url, **fields)

    @classmethod
    def post(cls, url: str, **fields: Any) -> Self:
        """Creates a `POST` request. `fields` are those of the request, such as `body`."""
        return cls("POST", url, **fields)

    def header(self, name: str, value: str) -> Self:
        """Adds a header."""
        self.headers.append((name, value))
        return self

    def query(self, name: str, value: str) -> Self:
        """Adds a query parameter and percent-encodes it.

        A value that consists of exactly one `{{secret:NAME}}` is not encoded, so that the host can
        replace it.
        """
        url, mark, fragment = self.url.partition("#")
        value = value if SECRET.fullmatch(value) else quote(value, safe="")
        separator = "&" if "?" in url else "?"
        self.url = f"{url}{separator}{quote(name, safe='')}={value}{mark}{fragment}"
        return self

    def json(self, value: Any) -> Self:
        """Sets a JSON body with its content type."""
        self.body = _json.write("the body of an HTTP request", value)
        return self.header("content-type", "application/json")

    def send(self) -> Response:
        """Sends the request.

        A response with any status is a success; the call fails only without a response.
        """
        return cast(Response, _host.interface("http").send(self))


@dataclass
class Response:
    """An HTTP response."""

    status: int
    """Status code, such as 200."""
    body: bytes = b""
    """The body."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers with names in lower case."""
    url: str = ""
    """URL after redirects."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def header(self, name: str) -> str | None:
        """Returns the first header with a name, in upper or lower case."""
        found = (value for key, value in self.headers if key.lower() == name.lower())
        return next(found, None)

    def text(self) -> str:
        """Returns the body as text. Invalid UTF-8 is replaced."""
        return self.body.decode(errors="replace")

    @overload
    def json(self, of: type[T]) -> T: ...

    @overload
    def json(self, of: Any = None) -> Any: ...

    def json(self, of: Any = None) -> Any:
        """Parses the JSON body as a type.

        Raises `invalid` if the body is not JSON or does not fit the type.
        """
        what = f"the response of `{self.url}`"
        return _schema.decode(what, of, _json.read(what, self.text()))

    def is_success(self) -> bool:
        """Returns true if the status is 200 to 299."""
        return 200 <= self.status < 300

    def ok(self) -> Self:
        """Returns the response if its status is 200 to 299.

        Raises `rate-limited` for 429, and `unavailable` for 408 and from 500 on, which are both
        retryable; `not-found` for 404; `http-status` for any other status.
        """
        if self.is_success():
            return self
        if self.status == 429:
            code, retryable = codes.RATE_LIMITED, True
        elif self.status == 408 or self.status >= 500:
            code, retryable = codes.UNAVAILABLE, True
        elif self.status == 404:
            code, retryable = codes.NOT_FOUND, False
        else:
            code, retryable = "http-status", False
        text = self.text()[:QUOTED_CHARS]
        message = f"`{self.url}` responded with status {self.status}: {text}"
        raise Failure(code, message, retryable=retryable)


def send_all(requests: Iterable[Request]) -> list[Response | Failure]:
    """Sends several requests concurrently. Returns the results in the order of the requests.

    The result of a request that fails is its `Failure`, which is not raised.
    """
    return cast(list[Response | Failure], _host.interface("http").send_all(list(requests)))
