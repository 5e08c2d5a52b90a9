"""A proxy on loopback that cuts connections, as those between a client and its server do."""

import asyncio
import re
from types import TracebackType
from urllib.parse import urlsplit

#: Ends a body that comes in chunks.
LAST_CHUNK = b"0\r\n\r\n"


class Cut(Exception):
    """A connection is to be cut."""


class Proxy:
    """Passes on what a server and its clients say, until it cuts.

    `after` cuts a stream behind so many of its events, in `times` streams: `gently` as a proxy does
    that ends the answer in order, else in the middle of it. `idle_s` cuts an answer that has begun
    when nothing more has come for so long.
    """

    def __init__(
        self,
        url: str,
        *,
        after: int | None = None,
        times: int = 0,
        gently: bool = False,
        idle_s: float | None = None,
    ) -> None:
        place = urlsplit(url)
        self._to = (place.hostname, place.port)
        self._after, self._left, self._gently, self._idle_s = after, times, gently, idle_s
        self._changed = asyncio.Condition()
        #: How many streams have begun.
        self.opened = 0
        #: How many connections were cut.
        self.cuts = 0

    async def __aenter__(self) -> "Proxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        #: Where clients find it.
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    async def streams(self, count: int) -> None:
        """Waits until so many streams have begun."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.opened >= count)

    async def cut(self, count: int) -> None:
        """Waits until so many connections were cut."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.cuts >= count)

    async def _serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        server, forth = await asyncio.open_connection(*self._to)
        asking = asyncio.create_task(pass_on(client, forth))
        try:
            while True:
                await self._answer(server, back)
        except (Cut, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            asking.cancel()
            back.close()
            forth.close()

    async def _answer(self, server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Passes one answer on."""
        head = await server.readuntil(b"\r\n\r\n")
        back.write(head)
        await back.drain()
        fields = head.lower()
        if b"\r\ncontent-type: text/event-stream" in fields:
            self.opened += 1
            await self._tell()
        if b"\r\ntransfer-encoding: chunked" in fields:
            await self._chunks(server, back)
        elif length := re.search(rb"\r\ncontent-length: *(\d+)", fields):
            await self._next(server.readexactly(int(length[1])), back)

    async def _chunks(self, server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        seen = 0
        while True:
            size = await self._next(server.readuntil(b"\r\n"), back)
            chunk = await self._next(server.readexactly(int(size, 16) + 2), back)
            if int(size, 16) == 0:
                return
            seen += chunk.count(b"event: ")
            if self._left > 0 and self._after is not None and seen >= self._after:
                self._left -= 1
                if self._gently:
                    back.write(LAST_CHUNK)
                    await back.drain()
                await self._count()
                raise Cut

    async def _next(self, coming, back: asyncio.StreamWriter) -> bytes:
        """The next piece, which is passed on, unless nothing comes for too long."""
        try:
            piece = await asyncio.wait_for(coming, self._idle_s)
        except TimeoutError:
            await self._count()
            raise Cut from None
        back.write(piece)
        await back.drain()
        return piece

    async def _count(self) -> None:
        self.cuts += 1
        await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes bytes on until there are no more."""
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()
