"""Failures: the error of plugins and of all imports."""

from __future__ import annotations

from typing import Any, Self

from wattle import code as codes

STATUS = "http_status"
"""Key in `Failure.details` that contains the HTTP status of a web handler's response.

`status` is the one of a model's provider.
"""


class Failure(Exception):
    """The error of a plugin or of a host call.

    >>> failure = Failure("no-rate", "there is no rate for `XYZ`; use a known currency")
    >>> failure.retryable
    False
    >>> Failure("busy", "the book is closed until 08:00", retryable=True).retryable
    True
    """

    code: str
    """A short stable machine-readable identifier, see `wattle.code`."""
    message: str
    """A human-readable message: the failed operation, the reason, and a hint."""
    retryable: bool
    """True if the same call can succeed later. The host retries a node only then."""
    details: Any
    """Structured details as JSON; `None` if there are none."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, details: Any = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.details = details

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return f"Failure({self.code!r}, {self.message!r})"

    @classmethod
    def invalid(cls, message: str, *, details: Any = None) -> Self:
        """Creates a failure with the code `invalid`."""
        return cls(codes.INVALID, message, details=details)

    @classmethod
    def not_found(cls, message: str, *, details: Any = None) -> Self:
        """Creates a failure with the code `not-found`."""
        return cls(codes.NOT_FOUND, message, details=details)

    @classmethod
    def conflict(cls, message: str, *, details: Any = None) -> Self:
        """Creates a failure with the code `conflict`."""
        return cls(codes.CONFLICT, message, details=details)

    @classmethod
    def unsupported(cls, message: str, *, details: Any = None) -> Self:
        """Creates a failure with the code `unsupported`."""
        return cls(codes.UNSUPPORTED, message, details=details)

    @classmethod
    def unavailable(cls, message: str, *, details: Any = None) -> Self:
        """Creates a retryable failure with the code `unavailable`."""
        return cls(codes.UNAVAILABLE, message, retryable=True, details=details)

    @classmethod
    def timeout(cls, message: str, *, details: Any = None) -> Self:
        """Creates a retryable failure with the code `timeout`."""
        return cls(codes.TIMEOUT, message, retryable=True, details=details)

    @classmethod
    def internal(cls, message: str, *, details: Any = None) -> Self:
        """Creates a failure with the code `internal`, for a defect of the plugin."""
        return cls(codes.INTERNAL, message, details=details)

    def context(self, operation: str) -> Self:
        """Prefixes the message with the failed operation.

        >>> Failure.not_found("no row 7").context("load the portfolio").message
        'load the portfolio: no row 7'
        """
        self.message = f"{operation}: {self.message}"
        return self

    def with_status(self, status: int) -> Self:
        """Sets the HTTP status of the response if a web handler raises this failure.

        The default is 500.

        >>> Failure.invalid("`name` is empty").with_status(422).status()
        422
        """
        if isinstance(self.details, dict):
            details = dict(self.details)
        else:
            details = {} if self.details is None else {"facts": self.details}
        self.details = {**details, STATUS: status}
        return self

    def status(self) -> int | None:
        """Returns the HTTP status that was set with `with_status`."""
        status = detail_of(self, STATUS)
        return status if type(status) is int and 0 <= status <= 0xFFFF else None

    def refused_completion(self) -> str | None:
        """Returns the completion that the host refused because it violates the schema.

        It is the document in the completion if the host found one, otherwise the beginning of its
        text.

        >>> details = {"answer": "Sure: {}", "document": "{}"}
        >>> Failure.invalid("`/kind` is missing", details=details).refused_completion()
        '{}'
        """
        if self.code != codes.INVALID:
            return None
        refused = detail_of(self, "document", detail_of(self, "answer"))
        return refused if isinstance(refused, str) else None

    def to_json(self) -> dict[str, Any]:
        """Returns the failure as a JSON object."""
        failure: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
        }
        if self.details is not None:
            failure["details"] = self.details
        return failure

    @classmethod
    def from_json(cls, failure: Any) -> Self:
        """Reads a failure from a JSON object, as events contain it."""
        if not isinstance(failure, dict):
            return cls(codes.INTERNAL, str(failure))
        return cls(
            str(failure.get("code", codes.INTERNAL)),
            str(failure.get("message", "")),
            retryable=failure.get("retryable") is True,
            details=failure.get("details"),
        )


def detail_of(failure: Failure, name: str, default: Any = None) -> Any:
    """Returns a field of the details of a failure; `default` if there is none."""
    return failure.details.get(name, default) if isinstance(failure.details, dict) else default
