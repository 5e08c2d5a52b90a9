"""Status codes of responses."""

CREATED = 201
"""Something was created."""

ACCEPTED = 202
"""The request is accepted, and its work is not complete."""

NO_CONTENT = 204
"""The request succeeded, and the response has no body."""

NOT_MODIFIED = 304
"""The client already has the current version."""

PERMANENT_REDIRECT = 308
"""The resource has another URL, which the header `location` names."""

BAD_REQUEST = 400
"""The request is invalid."""

NOT_FOUND = 404
"""The resource does not exist."""

CONFLICT = 409
"""The request conflicts with the current state."""

GONE = 410
"""The resource does not exist any more."""

PRECONDITION_FAILED = 412
"""The client does not have the version that it wants to replace."""

PAYLOAD_TOO_LARGE = 413
"""The body exceeds a limit."""

UNPROCESSABLE_ENTITY = 422
"""The body is well-formed, and its content is invalid."""

INTERNAL_SERVER_ERROR = 500
"""A defect of the app."""

BAD_GATEWAY = 502
"""A service failed on which the app depends."""
