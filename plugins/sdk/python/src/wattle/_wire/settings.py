"""Calls of `settings`."""

from __future__ import annotations

from wit_world.imports import settings as raw


def get(name: str) -> str | None:
    """Returns a setting as JSON text."""
    return raw.get(name)


def all() -> str:
    """Returns all settings as JSON text."""
    return raw.all()
