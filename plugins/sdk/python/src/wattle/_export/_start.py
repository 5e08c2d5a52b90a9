"""What a component does once, before the build stores its state.

Later there are no files: a module that is not loaded by then cannot be imported, and a traceback
has only the lines of sources that were read.
"""

from __future__ import annotations

import importlib
import linecache
import logging
import sys

from wattle import _host, log
from wattle._export._answer import OWN_FILES
from wattle.log import Level

LATE_IMPORTS = (
    "_strptime",
    "decimal",
    "difflib",
    "encodings.idna",
    "fractions",
    "locale",
    "traceback",
    "unicodedata",
)
"""Modules that the standard library imports only when it needs them, as far as they are common."""


def provide(interfaces: list[str]) -> None:
    """Makes the imports of the component available to the modules of the SDK."""
    for name in interfaces:
        _host.provide(name, importlib.import_module(f"wattle._wire.{name}"))


def load(module: str, modules: list[str]) -> None:
    """Imports the plugin, and the modules that it imports within functions."""
    importlib.import_module(module)
    for name in [*modules, *LATE_IMPORTS]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            # The plugin may handle it, as it does where the module is optional.
            print(f"note: `{name}` is not part of the component: {error}", file=sys.stderr)


def keep_sources(modules: list[str]) -> None:
    """Keeps the lines of modules, which tracebacks show."""
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        lines = linecache.getlines(file) if file else []
        if file and lines:
            # Without a time, the entry is not compared with the file.
            linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
            OWN_FILES.add(file)


class _Handler(logging.Handler):
    """Sends messages of `logging` to the log of the host."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log.write(_level(record.levelno), self.format(record), {"logger": record.name})
        except Exception:
            self.handleError(record)


def _level(number: int) -> Level:
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARN
    return Level.INFO if number >= logging.INFO else Level.DEBUG


def forward_logging() -> None:
    """Sends messages of `logging` to the log of the host, unless the plugin handles them itself."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Handler())
        if root.level == logging.WARNING:
            root.setLevel(logging.INFO)
