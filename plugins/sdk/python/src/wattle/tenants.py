"""Model routes of the request's tenant, for web handlers.

Tenants configure their own models through them. A request without a tenant uses the routes of the
default tenant. Within a node, the functions fail with `unsupported`, because a run must not change
its own configuration.
"""

from __future__ import annotations

from typing import Any

from wattle import _host, _json


def set_route(route: str, config: Any) -> None:
    """Sets a model route of the tenant.

    `config` has the fields of the request body of `PUT /api/v1/tenants/{tenant}/routes/{route}`.
    The host stores the API key in it and never returns the key. Raises `denied` if the grant
    `tenant_routes` does not contain the route, `invalid` if `config` is invalid, `unsupported`
    within a node.
    """
    _host.interface("tenants").set_route(route, _json.to_value("the route", config))


def get_route(route: str) -> Any:
    """Returns the tenant's own route without its API key, or `None` if the tenant has none."""
    return _host.interface("tenants").get_route(route)


def remove_route(route: str) -> None:
    """Removes the tenant's route, so that the operator's route applies again."""
    _host.interface("tenants").remove_route(route)
