"""Inputs and outputs that are the same in the SDKs for Rust, TypeScript and Python."""

import json
from pathlib import Path
from typing import Any

VECTORS: dict[str, list[Any]] = json.loads(
    (Path(__file__).parent.parent.parent / "vectors.json").read_text("utf-8")
)
"""The cases by function. The tests of the other SDKs read the same file."""
