"""The implementation of the imports: the host in a component, the fake host in tests.

Both provide the same functions, with the types of the SDK.
"""

from __future__ import annotations

from typing import Any

from wattle.failure import Failure

INTERFACES = (
    "blob",
    "clock",
    "emit",
    "http",
    "interrupt",
    "llm",
    "log",
    "memory",
    "random",
    "runs",
    "settings",
    "sql",
    "tenants",
    "tools",
)
"""The imports that a plugin may use. Each has a module of the same name."""

_of_component: dict[str, Any] = {}


def provide(name: str, implementation: Any) -> None:
    """Sets the implementation of an import in a component."""
    _of_component[name] = implementation


def interface(name: str) -> Any:
    """Returns the implementation of an import."""
    if name in _of_component:
        return _of_component[name]
    if _of_component:
        raise Failure.unsupported(
            f"the component does not import `{name}`; import `wattle.{name}` at the top of a "
            "module, so that the build finds it"
        )
    from wattle.testing import _answer

    return _answer.INTERFACES[name]
