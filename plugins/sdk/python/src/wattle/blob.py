"""Blobs: content-addressed bytes.

State, messages and the journal contain references to blobs instead of bytes.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import cast

from mashumaro.types import SerializableType

from wattle import _host
from wattle.failure import Failure


class BlobRef(str, SerializableType):
    """A reference to a blob: `blob:` and 64 hexadecimal digits."""

    __slots__ = ()

    def _serialize(self) -> str:
        return str(self)

    @classmethod
    def _deserialize(cls, value: str) -> BlobRef:
        return cls(value)


@dataclass
class Info:
    """Metadata of a blob."""

    blob: BlobRef
    """Reference to the blob."""
    size: int
    """Size in bytes."""
    media_type: str
    """Media type, such as `image/png`."""


@dataclass
class Data:
    """A decoded data URL."""

    media_type: str
    """Media type, such as `image/png`."""
    bytes: bytes
    """The decoded bytes."""


def put(data: bytes, media_type: str) -> BlobRef:
    """Stores bytes as a blob. Equal bytes have the same reference."""
    return cast(BlobRef, _host.interface("blob").put(data, media_type))


def get(blob: BlobRef) -> bytes:
    """Reads a whole blob of at most 64 MiB. Read a larger blob in ranges, with `get_range`."""
    return cast(bytes, _host.interface("blob").get(blob, 0, None))


def get_range(blob: BlobRef, offset: int, length: int) -> bytes:
    """Reads up to `length` bytes of a blob, beginning at `offset`.

    Returns fewer bytes if the blob ends earlier.
    """
    return cast(bytes, _host.interface("blob").get(blob, offset, length))


def stat(blob: BlobRef) -> Info:
    """Returns the metadata of a blob."""
    return cast(Info, _host.interface("blob").stat(blob))


def link(blob: BlobRef) -> str:
    """Returns a short path under which the host serves a blob over HTTP for the tenant of the call.

    A page can use the path as the URL of an image.
    """
    return cast(str, _host.interface("blob").link(blob))


def parse_data_url(url: str) -> Data:
    """Decodes a data URL of the form `data:<media type>;base64,<data>`.

    Browsers send files within JSON in this format. The default media type is `text/plain`. Raises
    `invalid` if the string does not have this form.

    >>> parse_data_url("data:text/plain;base64,aGk=").bytes
    b'hi'
    """
    if not url.startswith("data:"):
        raise _not_a_data_url("it does not start with `data:`")
    kind, comma, text = url.removeprefix("data:").partition(",")
    if not comma:
        raise _not_a_data_url("there is no comma")
    if not kind.endswith(";base64"):
        raise _not_a_data_url("it is not base64")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _not_a_data_url(str(error)) from None
    return Data(kind.removesuffix(";base64").split(";")[0] or "text/plain", data)


def _not_a_data_url(reason: str) -> Failure:
    return Failure.invalid(f"read a data URL: {reason}; expected `data:<media type>;base64,<data>`")
