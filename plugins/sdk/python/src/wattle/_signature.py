"""Signatures of nodes, tools and reducers: their types, and their schemas."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, NotRequired

from mashumaro.types import Alias
from typing_extensions import TypedDict

from wattle import _json, _schema

CONTEXT_NAMES = ("context", "ctx")
"""Names by which a first parameter without a type is the context."""

Function = Callable[..., Any]


class DefinitionError(TypeError):
    """A function that cannot be a node, a tool, a reducer or a handler, with its place."""


def place_of(function: Function) -> str:
    """Returns the file and the line of a function."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def refuse(function: Function, reason: str) -> DefinitionError:
    """Returns the error of a function that does not fit its decorator."""
    return DefinitionError(f"{place_of(function)}: `{function.__name__}` {reason}")


def doc_of(function: Function) -> str:
    """Returns the documentation of a function."""
    return inspect.cleandoc(function.__doc__) if function.__doc__ else ""


@dataclass(frozen=True)
class Inputs:
    """The parameters of a function, without its context."""

    codec: _schema.Codec
    """Reads the object whose fields are the parameters."""
    schema: dict[str, Any]
    """JSON Schema of the object."""
    takes_context: bool
    """True if the first parameter is the context."""
    names: dict[str, str]
    """Names of the fields and of their parameters."""
    nullable: tuple[str, ...] = ()
    """Parameters without a default that are `None` if their fields are missing."""
    single: Any = None
    """Type of the only parameter if that receives the whole object, as for `Unchecked`."""

    def arguments(self, what: str, value: Any) -> dict[str, Any]:
        """Reads an object as arguments of the function."""
        fields = self.codec.decode(what, value)
        given = {self.names.get(name, name): field for name, field in fields.items()}
        return dict.fromkeys(self.nullable) | given


def signature_of(function: Function, kind: str) -> inspect.Signature:
    """Returns the signature of a function with evaluated types."""
    if not inspect.isfunction(function):
        raise DefinitionError(f"`@{kind}` decorates a function, not {function!r}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(function, f"is asynchronous, which a {kind} cannot be; remove `async`")
    if inspect.isgeneratorfunction(function):
        raise refuse(function, f"is a generator, which a {kind} cannot be; return the values")
    try:
        return inspect.signature(function, eval_str=True)
    except Exception as error:
        raise refuse(function, f"has a type that cannot be evaluated: {error}") from None


def inputs_of(function: Function, kind: str, context: type, *, single: type | None) -> Inputs:
    """Reads the parameters of a node or a tool.

    `context` is the type of the context. A function may have one parameter of the type `single` in
    place of the others.
    """
    signature = signature_of(function, kind)
    parameters = list(signature.parameters.values())
    takes_context = bool(parameters) and _is_context(parameters[0], context)
    parameters = parameters[1:] if takes_context else parameters
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_KEYWORD and len(parameters) == 1:
            return _all_fields(takes_context)
        _check(function, kind, parameter, context)
    if single is not None and len(parameters) == 1:
        of = parameters[0].annotation
        if typing.get_origin(of) is single:
            return _whole(function, of, takes_context)
    return _named(function, parameters, takes_context)


def _is_context(parameter: Parameter, context: type) -> bool:
    if parameter.annotation is Parameter.empty:
        return parameter.name in CONTEXT_NAMES
    return parameter.annotation is context


def _check(function: Function, kind: str, parameter: Parameter, context: type) -> None:
    name = parameter.name
    if parameter.kind is Parameter.VAR_KEYWORD:
        raise refuse(
            function, f"has parameters beside `**{name}`, which stands for all of them; remove one"
        )
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.POSITIONAL_ONLY):
        raise refuse(function, f"has the positional parameter `{name}`; a {kind} gets names")
    if parameter.annotation is Parameter.empty:
        raise refuse(function, f"has the parameter `{name}` without a type, such as `{name}: str`")
    if parameter.annotation is context:
        raise refuse(function, f"has its context `{name}` in another place than the first")


def _all_fields(takes_context: bool) -> Inputs:
    codec = _schema.codec(dict[str, Any])
    return Inputs(codec, {}, takes_context, {})


def _whole(function: Function, of: Any, takes_context: bool) -> Inputs:
    inner = typing.get_args(of)[0]
    codec = codec_of(function, inner)
    return Inputs(codec, codec.schema, takes_context, {}, single=inner)


def _named(function: Function, parameters: list[Parameter], takes_context: bool) -> Inputs:
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    nullable: list[str] = []
    for parameter in parameters:
        key = _alias(parameter.annotation) or parameter.name
        if key in fields:
            raise refuse(function, f"has two parameters for `{key}`")
        # A channel without a value is missing in the input, so `None` is its value in Python.
        has_default = parameter.default is not Parameter.empty
        is_nullable = not has_default and _schema.is_optional(parameter.annotation)
        of = parameter.annotation
        fields[key] = NotRequired[of] if has_default or is_nullable else of
        names[key] = parameter.name
        if is_nullable:
            nullable.append(parameter.name)
    codec = codec_of(function, _object("Inputs", fields))
    defaults = {
        key: parameter.default
        for key, parameter in zip(fields, parameters, strict=True)
        if parameter.default is not Parameter.empty and parameter.default is not None
    }
    schema = _with_defaults(codec.schema, defaults)
    return Inputs(codec, schema, takes_context, names, tuple(nullable))


def _object(name: str, fields: dict[str, Any]) -> Any:
    """Returns the type of an object with these fields. Type checkers know no such types."""
    make: Any = TypedDict
    return make(name, fields)


def _with_defaults(schema: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    properties = dict(schema.get("properties", {}))
    for key, default in defaults.items():
        value = _json.to_value(f"the default of `{key}`", default)
        properties[key] = {**properties[key], "default": value}
    return {**schema, "properties": properties}


def _alias(of: Any) -> str | None:
    """Returns the name of a field if its parameter has another one: `Annotated[T, Alias(...)]`."""
    if typing.get_origin(of) is not typing.Annotated:
        return None
    aliases = (it for it in typing.get_args(of)[1:] if isinstance(it, Alias))
    alias = next(aliases, None)
    return str(alias.name) if alias is not None else None


def codec_of(function: Function, of: Any, *, is_closed: bool = False) -> _schema.Codec:
    """Returns the codec of a type in the signature of a function."""
    try:
        return _schema.codec(of, is_closed=is_closed)
    except TypeError as error:
        raise refuse(function, f"has a type that JSON cannot have: {error}") from None


def output_of(function: Function, outcome: type) -> _schema.Codec | None:
    """Returns the codec of what a node returns, or `None` for any object.

    The type is that of the updates, or an `Outcome` around it. A dictionary of names and types
    stands for an object with these fields.
    """
    of = signature_of(function, "node").return_annotation
    if of is inspect.Signature.empty:
        raise refuse(
            function,
            'has no return type; declare the channels that it writes, such as `-> {"words": int}`, '
            "or `-> None`",
        )
    if of is outcome:
        return None
    if typing.get_origin(of) is outcome:
        (of,) = typing.get_args(of)
    if of is None or of is type(None):
        of = {}
    if isinstance(of, dict):
        of = _object("Updates", of)
    if of is Any or of is dict or typing.get_origin(of) is dict:
        return None
    codec = codec_of(function, of)
    if codec.schema.get("type") != "object":
        raise refuse(
            function,
            f"returns `{_schema.name_of(of)}`, which has no channels; return a dictionary or a "
            "dataclass with one field per channel",
        )
    return codec


def reducer_types(function: Function) -> tuple[Any, Any]:
    """Returns the types of the current value and of one update; `None` for any type."""
    parameters = list(signature_of(function, "reducer").parameters.values())
    if len(parameters) != 2:
        raise refuse(
            function, "must have two parameters, such as `current: int | None, updates: list[int]`"
        )
    current, updates = (_typed(function, parameter) for parameter in parameters)
    if typing.get_origin(updates) is list:
        (updates,) = typing.get_args(updates)
    elif updates is list or updates is Any:
        updates = None
    else:
        name = parameters[1].name
        raise refuse(function, f"has `{name}`, which is not a list, such as `{name}: list[int]`")
    for of in (current, updates):
        if of is not None:
            codec_of(function, of)
    return current, updates


def _typed(function: Function, parameter: Parameter) -> Any:
    if parameter.annotation is Parameter.empty:
        name = parameter.name
        raise refuse(function, f"has the parameter `{name}` without a type")
    return parameter.annotation
