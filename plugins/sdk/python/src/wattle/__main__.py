"""`python -m wattle build MODULE`: builds a component from the module of a plugin."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Runs the command, and returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m wattle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build a component from the module of a plugin")
    build.add_argument("module", help="the module with the nodes and tools, such as `app`")
    build.add_argument("--path", type=Path, default=Path("."), help="the folder of the module")
    build.add_argument(
        "--output",
        "-o",
        type=Path,
        default=None,
        help="the file to write; `MODULE.wasm` without it",
    )
    options = parser.parse_args(arguments)
    # The build is not imported before the plugin, whose imports it looks at.
    from wattle._build import BuildError, build_component

    output = options.output or Path(f"{options.module.split('.')[0]}.wasm")
    try:
        build_component(options.module, options.path, output)
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
