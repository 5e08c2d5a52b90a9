"""The nodes, tools, reducers and web handlers of a plugin, and the decorators that declare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from wattle import _json, _schema, _signature
from wattle._conversation import Reads
from wattle._node import Context, Decision, Outcome, decide
from wattle._openapi import Endpoint
from wattle._signature import Function, doc_of, place_of, refuse
from wattle._tool import ToolContext, ToolHints, ToolOutput, Unchecked, output_of
from wattle.failure import Failure
from wattle.web import Request, Response

ENTRY = "__wattle__"
"""Attribute of a decorated function that contains its entry."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class NodeEntry:
    """The description of a node and the function that runs it."""

    name: str
    doc: str
    function: Function
    inputs: _signature.Inputs
    output: _schema.Codec | None
    config: _schema.Codec | None
    reads: Reads | None

    def output_schema(self) -> dict[str, Any]:
        """Returns the JSON Schema of the updates."""
        return {} if self.output is None else self.output.schema

    def run(self, context: Context, value: Any) -> Decision:
        """Reads the input, runs the node, and splits its updates by channel."""
        arguments = self.inputs.arguments(f"the input of node `{context.node}`", value)
        contexts = [context] if self.inputs.takes_context else []
        return decide(self.function(*contexts, **arguments), self.output)


@dataclass(frozen=True)
class ToolEntry:
    """The description of a tool and the function that calls it."""

    name: str
    description: str
    function: Function
    inputs: _signature.Inputs
    hints: ToolHints

    @property
    def accepts_invalid(self) -> bool:
        """True if the tool accepts arguments that violate the schema."""
        return self.inputs.single is not None

    def call(self, context: ToolContext, value: Any) -> ToolOutput:
        """Reads the arguments and calls the tool."""
        contexts = [context] if self.inputs.takes_context else []
        if self.accepts_invalid:
            arguments = Unchecked[Any](self.inputs.single, value, context.violations)
            return output_of(self.function(*contexts, arguments))
        named = self.inputs.arguments("the arguments", value)
        return output_of(self.function(*contexts, **named))


@dataclass(frozen=True)
class ReducerEntry:
    """The description of a reducer and the function that calls it."""

    name: str
    doc: str
    function: Function
    current: Any
    update: Any

    def reduce(self, current: str | None, updates: list[str]) -> str:
        """Reads the JSON values, calls the reducer, and serializes its result."""
        value = None
        if current is not None:
            what = "the current value"
            value = _schema.decode(what, self.current, _json.read(what, current))
        values = []
        for index, text in enumerate(updates):
            what = f"update {index}"
            values.append(_schema.decode(what, self.update, _json.read(what, text)))
        return _json.write("the reduced value", self.function(value, values))


@dataclass(frozen=True)
class HandlerEntry:
    """The description of a web handler and the function that handles its requests."""

    endpoint: Endpoint
    doc: str
    function: Function

    def handle(self, request: Request) -> Response:
        """Handles a request. A failure with a status becomes a response."""
        try:
            response = self.function(request)
        except Failure as failure:
            status = failure.status()
            if status is None:
                raise
            return Response.problem(status, failure)
        if not isinstance(response, Response):
            raise Failure.internal(
                f"the handler returned a value of type `{type(response).__name__}`; return a "
                "`Response`, such as `Response.json(200, value)`"
            )
        return response


@dataclass
class Plugin:
    """What a plugin declares."""

    nodes: dict[str, NodeEntry] = field(default_factory=dict)
    tools: dict[str, ToolEntry] = field(default_factory=dict)
    reducers: dict[str, ReducerEntry] = field(default_factory=dict)
    handlers: dict[tuple[str, str], HandlerEntry] = field(default_factory=dict)
    manifest: str | None = None


_plugins = [Plugin()]


def plugin() -> Plugin:
    """Returns the plugin to which decorators add."""
    return _plugins[-1]


@contextmanager
def separate_plugin() -> Iterator[Plugin]:
    """Makes decorators add to a new plugin, for tests."""
    _plugins.append(Plugin())
    try:
        yield _plugins[-1]
    finally:
        _plugins.pop()


def entry_of(function: Function, kind: type) -> Any:
    """Returns the entry of a decorated function."""
    entry = getattr(function, ENTRY, None)
    if not isinstance(entry, kind):
        decorator = kind.__name__.removesuffix("Entry").lower()
        raise TypeError(f"`{function.__name__}` is not decorated with `@{decorator}`")
    return entry


def _add(entries: dict[Any, Any], key: Any, name: str, entry: Any) -> None:
    known = entries.get(key)
    function = entry.function
    # A module that is loaded again declares its functions again.
    if known is not None and place_of(known.function) != place_of(function):
        raise refuse(function, f"declares {name} again, like {place_of(known.function)}")
    entries[key] = entry
    setattr(function, ENTRY, entry)


@overload
def node(function: F) -> F: ...


@overload
def node(
    *, name: str | None = None, config: Any = None, reads: Reads | None = None
) -> Callable[[F], F]: ...


def node(
    function: F | None = None,
    *,
    name: str | None = None,
    config: Any = None,
    reads: Reads | None = None,
) -> F | Callable[[F], F]:
    """Declares a function as a graph node.

    The first parameter may be the `Context`. The other parameters are the state channels that the
    node reads, and the return type has the channels that it writes. `**channels` stands for the
    whole state. The documentation of the function becomes the description of the node. `name` sets
    another name than that of the function. `config` publishes the schema of the configuration that
    `Context.config` returns. `reads` declares channels apart from the parameters, and the one with
    the conversation of the node.
    """

    def declare(function: F) -> F:
        inputs = _signature.inputs_of(function, "node", Context, single=None)
        output = _signature.output_of(function, Outcome)
        configuration = None
        if config is not None:
            configuration = _signature.codec_of(function, config, is_closed=True)
        known = name or function.__name__
        entry = NodeEntry(known, doc_of(function), function, inputs, output, configuration, reads)
        _add(plugin().nodes, known, f"the node `{known}`", entry)
        return function

    return declare if function is None else declare(function)


@overload
def tool(function: F) -> F: ...


@overload
def tool(
    *, name: str | None = None, read_only: bool = False, idempotent: bool = False
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    *,
    name: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
) -> F | Callable[[F], F]:
    """Declares a function as a tool.

    The first parameter may be the `ToolContext`. The other parameters are the arguments. The
    function returns a text, a value that becomes JSON, or a `ToolOutput`. Its documentation becomes
    the description for models. `name` sets another name than that of the function. `read_only`
    declares that a call has no effects, and `idempotent` that a repeated call has no further
    effects.
    """

    def declare(function: F) -> F:
        inputs = _signature.inputs_of(function, "tool", ToolContext, single=Unchecked)
        known = name or function.__name__
        hints = ToolHints(read_only, idempotent)
        entry = ToolEntry(known, doc_of(function), function, inputs, hints)
        _add(plugin().tools, known, f"the tool `{known}`", entry)
        return function

    return declare if function is None else declare(function)


@overload
def reducer(function: F) -> F: ...


@overload
def reducer(*, name: str | None = None) -> Callable[[F], F]: ...


def reducer(function: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
    """Declares a function as a reducer.

    It gets the current value, which is `None` before the first write, and the list of the updates,
    and returns the new value. It must be pure. `name` sets another name than that of the function.
    """

    def declare(function: F) -> F:
        current, update = _signature.reducer_types(function)
        known = name or function.__name__
        entry = ReducerEntry(known, doc_of(function), function, current, update)
        _add(plugin().reducers, known, f"the reducer `{known}`", entry)
        return function

    return declare if function is None else declare(function)


def handler(
    method: str,
    path: str,
    *,
    query: dict[str, Any] | None = None,
    body: Any = None,
    returns: Any = None,
    events: Any = None,
    bytes: str | None = None,
    error: Any = None,
) -> Callable[[F], F]:
    """Declares a function as the web handler of an endpoint: `@handler("POST", "/items/{id}")`.

    The function gets a `Request` and returns a `Response`. Its documentation and the types describe
    the endpoint in the OpenAPI document. They have no effect on requests.

    `query` has the parameters of the query string and their types, `body` is the type of the JSON
    body, which may be missing if the type is optional. `returns` is the type of the response with
    status 200, or a dictionary of statuses and types, with `None` for a response without a body.
    `events` is the type of one server-sent event, `bytes` the media type of a body of bytes, and
    `error` the type of the JSON body of all other responses.
    """

    def declare(function: F) -> F:
        if method not in METHODS:
            known = "`, `".join(METHODS)
            raise refuse(function, f"handles `{method}`; expected one of `{known}`")
        if not path.startswith("/"):
            raise refuse(function, f"handles `{path}`; a path must start with `/`")
        if len(_signature.signature_of(function, "handler").parameters) != 1:
            raise refuse(function, "must have one parameter, the request")
        responses = returns if isinstance(returns, dict) else {}
        if returns is not None and not isinstance(returns, dict):
            responses = {200: returns}
        endpoint = Endpoint(method, path, query or {}, body, responses, events, bytes, error)
        entry = HandlerEntry(endpoint, doc_of(function), function)
        _add(plugin().handlers, (method, path), f"the handler of `{method} {path}`", entry)
        return function

    return declare


def manifest(text: str) -> None:
    """Sets the manifest of the plugin, TOML text that requests the permissions that it needs.

    The host intersects them with the operator's grants. The build checks the text, and embeds it in
    the component. The manifest of a component of an app has no effect: `[needs]` in `app.toml`
    requests the permissions of the components.
    """
    if plugin().manifest is not None:
        raise _signature.DefinitionError("the plugin has two manifests; call `manifest` once")
    plugin().manifest = text
