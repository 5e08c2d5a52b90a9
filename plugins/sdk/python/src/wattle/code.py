"""Codes that the host uses. A plugin can also use its own codes."""

DENIED = "denied"
"""The operator did not grant the call; the message names the line to add to the configuration."""

UNSUPPORTED = "unsupported"
"""This host does not support the call."""

INVALID = "invalid"
"""The request or an argument is invalid."""

LIMIT = "limit"
"""A limit was reached."""

TIMEOUT = "timeout"
"""The timeout expired."""

UNAVAILABLE = "unavailable"
"""A service cannot be reached, or reports an internal error."""

RATE_LIMITED = "rate-limited"
"""A service rejects the request because of its rate limit."""

NOT_FOUND = "not-found"
"""The requested item does not exist."""

CONFLICT = "conflict"
"""The request conflicts with the current state."""

EXPIRED = "expired"
"""The requested item has expired."""

BUSY = "busy"
"""Another operation is active; the request can be retried later."""

CANCELLED = "cancelled"
"""The operation was cancelled."""

INTERNAL = "internal"
"""A defect of the plugin or of the host."""
