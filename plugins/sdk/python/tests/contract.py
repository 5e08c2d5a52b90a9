"""Bindings of the contract for tests, with the names that componentize-py generates.

They are made from the WIT files, so a conversion that does not fit the contract fails here as it
would in a component. Functions of the host are in `HOST`, by interface and name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import make_dataclass
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any

WIT = Path(__file__).parent.parent / "src/wattle/wit"

HOST: dict[str, Callable[..., Any]] = {}
"""Functions of the host by interface and name, such as `llm.complete`."""

RECORD = re.compile(r"^    record (\S+) \{\n(.*?)^    \}", re.MULTILINE | re.DOTALL)
VARIANT = re.compile(r"^    variant (\S+) \{\n(.*?)^    \}", re.MULTILINE | re.DOTALL)
RESOURCE = re.compile(r"^    resource (\S+) \{\n(.*?)^    \}", re.MULTILINE | re.DOTALL)
FUNCTION = re.compile(r"^ +%?([a-z0-9-]+): func\(", re.MULTILINE)
FIELD = re.compile(r"^        ([a-z0-9-]+): ", re.MULTILINE)
CASE = re.compile(r"^        ([a-z0-9-]+)(\(.*\))?,$", re.MULTILINE)

EXPORTED = ("node", "reducer", "web")
"""Interfaces whose types are those of the export. `tool` is an import of `tools` as well."""


class Err(Exception):
    """The failure of a call."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Ok:
    """The output of a call."""

    def __init__(self, value: Any) -> None:
        self.value = value


def install() -> None:
    """Makes the bindings importable."""
    if "wit_world" in sys.modules:
        return
    types = ModuleType("componentize_py_types")
    types.Err, types.Ok = Err, Ok  # type: ignore[attr-defined]
    sys.modules["componentize_py_types"] = types
    packages = ("wit_world", "wit_world.imports", "wit_world.exports")
    for name in packages:
        package = ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
    for file in WIT.glob("*.wit"):
        if file.stem != "worlds":
            module = _module(file.stem, file.read_text("utf-8"))
            kinds = ["exports"] if file.stem in EXPORTED else ["imports"]
            for kind in [*kinds, "exports"] if file.stem == "tool" else kinds:
                sys.modules[f"wit_world.{kind}.{file.stem}"] = module
                setattr(sys.modules[f"wit_world.{kind}"], file.stem, module)


def failure(code: str, message: str = "no", details: str | None = None) -> Err:
    """Returns a failure of the host."""
    return Err(sys.modules["wit_world.imports.types"].Failure(code, message, False, details))


def _module(interface: str, text: str) -> ModuleType:
    module = ModuleType(interface)
    for name, body in RECORD.findall(text):
        fields = [_snake(field) for field in FIELD.findall(body)]
        setattr(module, _camel(name), make_dataclass(_camel(name), fields))
    for name, body in VARIANT.findall(text):
        for case, payload in CASE.findall(body):
            known = f"{_camel(name)}_{_keyword(_camel(case))}"
            setattr(module, known, make_dataclass(known, ["value"] if payload else []))
    for name, body in RESOURCE.findall(text):
        setattr(module, _camel(name), _resource(interface, name, FUNCTION.findall(body)))
    rest = RESOURCE.sub("", text)
    for name in FUNCTION.findall(rest):
        setattr(module, _snake(name), _function(f"{interface}.{name}"))
    return module


def _resource(interface: str, name: str, methods: list[str]) -> type:
    def leave(self: Any, *_: object) -> None:
        HOST[f"{interface}.{name}.drop"](self)

    known: dict[str, Any] = {"__exit__": leave}
    for method in methods:
        known[_snake(method)] = _function(f"{interface}.{name}.{method}")
    return type(_camel(name), (), known)


def _function(name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        return HOST[name](*arguments)

    return call


def _snake(name: str) -> str:
    return _keyword(name.replace("-", "_"))


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _keyword(name: str) -> str:
    return f"{name}_" if iskeyword(name) else name


def names() -> Iterator[str]:
    """Returns the functions of the host, by interface and name."""
    for file in WIT.glob("*.wit"):
        if file.stem not in ("worlds", "tool", *EXPORTED):
            text = RESOURCE.sub("", file.read_text("utf-8"))
            yield from (f"{file.stem}.{name}" for name in FUNCTION.findall(text))
