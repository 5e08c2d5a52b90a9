"""An MCP server on the official library for Python, at a version before 1.9: server.py

The library says nothing to a first message other than `initialize`, and ends at the message that
follows. Each process leaves a line in the file `starts` of its working folder.
"""

import os

# Before the library is loaded, which takes half a second.
with open("starts", "a", encoding="utf-8") as starts:
    starts.write("one more\n")

from mcp.server.fastmcp import FastMCP  # noqa: E402

server = FastMCP("old")


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def end() -> str:
    """Ends the server in the middle of the call."""
    os._exit(0)


server.run()
