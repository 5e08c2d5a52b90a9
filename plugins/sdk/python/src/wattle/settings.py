"""The app's non-secret settings, from `app.toml` and the operator's configuration."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from wattle import _host, _json, _schema
from wattle._whitespace import WHITESPACE
from wattle.failure import Failure

T = TypeVar("T")


@overload
def get(name: str, of: type[T]) -> T | None: ...


@overload
def get(name: str, of: Any = None) -> Any: ...


def get(name: str, of: Any = None) -> Any:
    """Returns a setting as a type, or `None` if it is not set.

    Raises `invalid` if the setting does not fit the type.
    """
    text = _host.interface("settings").get(name)
    if text is None:
        return None
    what = f"setting `{name}`"
    return _schema.decode(what, of, _json.read(what, text))


def text(name: str) -> str | None:
    """Returns a text setting without surrounding whitespace.

    Returns `None` if it is missing or blank. An operator replaces a setting of `app.toml` by a
    blank text to unset it. Raises `invalid` if the setting is not a text.

    >>> from wattle.testing import FakeHost
    >>> with FakeHost().setting("base_url", " https://a.example").setting("language", ""):
    ...     text("base_url"), text("language"), text("missing")
    ('https://a.example', None, None)
    """
    setting = get(name, str)
    return (setting or "").strip(WHITESPACE) or None


def text_or(name: str, default: str) -> str:
    """Returns a text setting as `text` does, or a default if it is missing or blank."""
    setting = text(name)
    return default if setting is None else setting


@overload
def require(name: str, of: type[T]) -> T: ...


@overload
def require(name: str, of: Any = None) -> Any: ...


def require(name: str, of: Any = None) -> Any:
    """Returns a required setting as a type.

    Raises `not-found` if the setting is not set, `invalid` if it does not fit the type.
    """
    setting = get(name, of)
    if setting is None:
        raise Failure.not_found(f"setting `{name}` is not set; add it to `[settings]`")
    return setting


@overload
def all(of: type[T]) -> T: ...


@overload
def all(of: Any = None) -> Any: ...


def all(of: Any = None) -> Any:
    """Returns all settings as one type. Raises `invalid` if the settings do not fit the type."""
    what = "the settings"
    return _schema.decode(what, of, _json.read(what, _host.interface("settings").all()))
