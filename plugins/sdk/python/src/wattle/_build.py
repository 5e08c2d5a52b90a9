"""The build of a component, with componentize-py.

The build imports the plugin to see what it declares and uses, writes a world with these imports and
exports and a module with the exports, and turns both into a component.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType

from wattle import _host, _openapi
from wattle._registry import Plugin, plugin
from wattle._signature import DefinitionError

CONTRACT = Path(__file__).parent / "wit"
"""The folder with the contract between host and plugins."""

VERSION = "0.1.0"
"""The version of the contract."""

WORLD = "wattle-component"
"""The name of the world that the build writes."""

ENTRY = "wattle_component_entry"
"""The name of the module with the exports."""

MANIFEST_SECTION = "wattle:manifest"
"""The custom section with the manifest."""

ALWAYS = ("blob", "log")
"""Imports that the SDK itself uses: messages contain blobs, and failures are logged."""

INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages."""

COMPONENTIZE = "import sys; from componentize_py import script; sys.exit(script())"
"""Runs componentize-py, whose package is no module to run."""


class BuildError(Exception):
    """A build that cannot succeed. The message says what to do."""


@dataclass(frozen=True)
class Parts:
    """What a plugin declares and uses."""

    exports: list[str]
    """Exported interfaces and the classes of their exports."""
    imports: list[str]
    """Imported interfaces."""
    modules: list[str]
    """Modules of the plugin itself."""
    late: list[str]
    """Modules that functions import."""


EXPORTS = {"node": "Node", "tool": "Tool", "reducer": "Reducer", "web": "Web"}
"""The interfaces that a plugin may export, and the classes that the bindings expect."""


def build_component(module: str, path: Path, output: Path) -> None:
    """Builds a component from a module in a folder."""
    if find_spec("componentize_py") is None:
        raise BuildError(
            "componentize-py is not installed; install the SDK with the extra `build` from the "
            "repository of Wattle, such as `pip install '../wattle/plugins/sdk/python[build]'`"
        )
    folder = path.resolve()
    parts = inspect(module, folder)
    manifest = _manifest(plugin())
    with tempfile.TemporaryDirectory(prefix="wattle-build-") as work:
        built = _componentize(module, parts, folder, Path(work))
        with built.open("ab") as file:
            if manifest is not None:
                file.write(custom_section(MANIFEST_SECTION, manifest.encode()))
        output.parent.mkdir(parents=True, exist_ok=True)
        # A running host must never see a partial file.
        partial = output.with_name(f".{output.name}.partial")
        shutil.copyfile(built, partial)
        os.replace(partial, output)
    names = ", ".join(f"`{name}`" for name in [*parts.exports, *parts.imports])
    print(f"built {output} with {names}")


def inspect(module: str, folder: Path) -> Parts:
    """Imports a plugin, and returns what it declares and uses."""
    sys.path.insert(0, str(folder))
    try:
        importlib.import_module(module)
    except DefinitionError as error:
        raise BuildError(str(error)) from None
    except BaseException as error:
        lines = traceback.format_exception(error.with_traceback(_own_frames(error, folder)))
        raise BuildError(f"cannot import `{module}`:\n{''.join(lines).rstrip()}") from None
    declared = plugin()
    kinds = {
        "node": declared.nodes,
        "tool": declared.tools,
        "reducer": declared.reducers,
        "web": declared.handlers,
    }
    exports = [name for name, entries in kinds.items() if entries]
    if not exports:
        raise BuildError(
            f"`{module}` declares nothing; decorate a function with `@node`, `@tool`, `@reducer` "
            "or `@handler`"
        )
    try:
        _openapi.routes((it.endpoint, it.doc) for it in declared.handlers.values())
    except (TypeError, NotImplementedError) as error:
        raise BuildError(f"an endpoint has a type that JSON cannot have: {error}") from None
    used = [name for name in _host.INTERFACES if f"wattle.{name}" in sys.modules]
    own = list(_own_modules(folder))
    late = sorted({name for it in own for name in _late_imports(it)} - {it.__name__ for it in own})
    return Parts(exports, sorted({*used, *ALWAYS}), [it.__name__ for it in own], late)


def _own_frames(error: BaseException, folder: Path) -> TracebackType | None:
    """Returns the frames from the first one in the folder on."""
    frames = error.__traceback__
    while frames is not None:
        if frames.tb_frame.f_code.co_filename.startswith(str(folder)):
            return frames
        frames = frames.tb_next
    return None


def _own_modules(folder: Path) -> Iterator[ModuleType]:
    """Returns the loaded modules of the plugin, which are not installed packages."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is None or module.__name__ == "__main__" or not file.endswith(".py"):
            continue
        place = Path(file)
        is_sdk = module.__name__.split(".")[0] == "wattle"
        is_installed = is_sdk or not INSTALLED.isdisjoint(place.parts)
        if place.is_relative_to(folder) and not is_installed:
            yield module


def _late_imports(module: ModuleType) -> Iterator[str]:
    """Returns the modules that functions of a module import.

    They must be loaded before the component is stored.
    """
    tree = ast.parse(Path(str(module.__file__)).read_bytes())
    functions = (it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef | ast.Lambda))
    for function in functions:
        for statement in ast.walk(function):
            if isinstance(statement, ast.Import):
                yield from (alias.name for alias in statement.names)
            elif isinstance(statement, ast.ImportFrom):
                base = "." * statement.level + (statement.module or "")
                package = module.__package__ or None
                name = importlib.util.resolve_name(base, package) if statement.level else base
                yield name
                for alias in statement.names:
                    inner = f"{name}.{alias.name}"
                    if _is_module(inner):
                        yield inner


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _manifest(declared: Plugin) -> str | None:
    """Returns the manifest. A bad one is better found here than by the host."""
    if declared.manifest is not None:
        try:
            tomllib.loads(declared.manifest)
        except tomllib.TOMLDecodeError as error:
            raise BuildError(f"the manifest is not TOML: {error}") from None
    return declared.manifest


def world(parts: Parts) -> str:
    """Returns the world of a component."""
    imports = [f"    import wattle:plugin/{name}@{VERSION};" for name in parts.imports]
    exports = [f"    export wattle:plugin/{name}@{VERSION};" for name in parts.exports]
    lines = ["package wattle:build;", "", f"world {WORLD} {{", *imports, *exports, "}", ""]
    return "\n".join(lines)


def entry(module: str, parts: Parts) -> str:
    """Returns the source of the module with the exports."""
    lines = [
        "from wattle._export import _start",
        f"_start.provide({parts.imports!r})",
        f"_start.load({module!r}, {parts.late!r})",
        f"_start.keep_sources({parts.modules!r})",
        "_start.forward_logging()",
        *(f"from wattle._export.{name} import {EXPORTS[name]}" for name in parts.exports),
        "",
    ]
    return "\n".join(lines)


def _componentize(module: str, parts: Parts, folder: Path, work: Path) -> Path:
    (work / "wit/deps").mkdir(parents=True)
    shutil.copytree(CONTRACT, work / "wit/deps/wattle")
    (work / "wit/world.wit").write_text(world(parts), "utf-8")
    (work / "entry").mkdir()
    (work / "entry" / f"{ENTRY}.py").write_text(entry(module, parts), "utf-8")
    built = work / "component.wasm"
    command = [sys.executable, "-c", COMPONENTIZE, "--quiet"]
    command += ["--wit-path", str(work / "wit"), "--world", WORLD]
    command += ["componentize", ENTRY, "--output", str(built)]
    for place in [work / "entry", folder, *_libraries(folder)]:
        command += ["--python-path", str(place)]
    finished = subprocess.run(command, check=False)
    if finished.returncode != 0 or not built.is_file():
        raise BuildError(
            f"componentize-py failed with exit code {finished.returncode}; its output is above"
        )
    return built


def _libraries(folder: Path) -> list[Path]:
    """Returns the folders of installed packages, without the standard library of this Python."""
    paths = sysconfig.get_paths()
    standard = {Path(paths[name]) for name in ("stdlib", "platstdlib")}
    standard |= {place / "lib-dynload" for place in standard}
    # Python adds the current folder by itself. Only the folder of the plugin belongs to it.
    left_out = {*standard, folder, Path.cwd()}
    found = [Path(place) for place in sys.path if place and Path(place).is_dir()]
    return [place for place in dict.fromkeys(found) if place not in left_out]


def custom_section(name: str, content: bytes) -> bytes:
    """Returns a custom section of a component."""
    body = _leb128(len(name.encode())) + name.encode() + content
    return b"\0" + _leb128(len(body)) + body


def _leb128(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
