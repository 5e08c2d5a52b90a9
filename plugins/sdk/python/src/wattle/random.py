"""Random numbers from the operating system.

They are journaled, so a node that is executed again gets the same numbers.
"""

from __future__ import annotations

import builtins
from typing import cast
from uuid import UUID

from wattle import _host

UUID_BYTES = 16
"""Length of a UUID, in bytes."""


def bytes(length: int) -> builtins.bytes:
    """Returns `length` random bytes, at most 4,096."""
    return cast(builtins.bytes, _host.interface("random").bytes(length))


def u64() -> int:
    """Returns a random number of 64 bits."""
    return cast(int, _host.interface("random").u64())


def uuid() -> str:
    """Returns a new UUID of version 4, such as `3f1c0d1e-8b51-4a5e-9d0c-6a2f5f7b1c22`."""
    return str(UUID(bytes=bytes(UUID_BYTES), version=4))
