"""Calls of `tenants`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import tenants as raw

from wattle import _json
from wattle._wire._convert import call, value


def set_route(route: str, config: Any) -> None:
    """Sets a route of the tenant."""
    call(raw.set_route, route, _json.write("the route", config))


def get_route(route: str) -> Any:
    """Reads a route of the tenant."""
    return value(call(raw.get_route, route))


def remove_route(route: str) -> None:
    """Removes a route of the tenant."""
    call(raw.remove_route, route)
