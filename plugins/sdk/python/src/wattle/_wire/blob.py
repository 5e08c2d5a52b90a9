"""Calls of `blob`."""

from __future__ import annotations

from wit_world.imports import blob as raw

from wattle._wire._convert import call
from wattle.blob import BlobRef, Info


def put(data: bytes, media_type: str) -> BlobRef:
    """Stores bytes."""
    return BlobRef(call(raw.put, data, media_type))


def get(blob: str, offset: int, length: int | None) -> bytes:
    """Reads bytes."""
    return call(raw.get, str(blob), offset, length)


def stat(blob: str) -> Info:
    """Returns the metadata of a blob."""
    info = call(raw.stat, str(blob))
    return Info(BlobRef(info.blob), info.size, info.media_type)


def link(blob: str) -> str:
    """Returns the path of a blob."""
    return call(raw.link, str(blob))
