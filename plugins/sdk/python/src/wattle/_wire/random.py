"""Calls of `random`."""

from __future__ import annotations

import builtins

from wit_world.imports import random as raw


def bytes(length: int) -> builtins.bytes:
    """Returns random bytes."""
    return raw.bytes(length)


def u64() -> int:
    """Returns 64 random bits."""
    return raw.u64()
