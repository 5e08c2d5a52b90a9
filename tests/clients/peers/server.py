"""An MCP server on FastMCP whose tools ask a person: server.py <http|stdio>

Over HTTP it speaks the protocol without sessions: a call ends with its question, and is made again
with the answer. Over standard input and output it wants a handshake, as servers of earlier versions
do, and asks in the middle of the call. Over HTTP it ends with its standard input, so that it never
outlives who started it.
"""

import os
import sys
import threading
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.server.middleware import Middleware
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

carrier = sys.argv[1]
server = FastMCP("peer")


@dataclass
class Booking:
    seats: int


SCHEMA = {
    "type": "object",
    "properties": {"seats": {"type": "integer"}},
    "required": ["seats"],
}


class Handshake(Middleware):
    """The server of an earlier version."""

    async def on_discover(self, context, call_next):
        raise MCPError(-32601, "Method not found")


def booked(action: str, seats: int | None, city: str) -> str:
    return f"{seats} seats to {city}" if action == "accept" else f"{action} for {city}"


async def ask(city: str, ctx: Context) -> str:
    """Books seats; asks through the session how many."""
    answer = await ctx.elicit(f"How many seats to {city}?", response_type=Booking)
    return booked(answer.action, answer.data.seats if answer.action == "accept" else None, city)


async def end_with_question(city: str, ctx: Context) -> str | InputRequiredResult:
    """Books seats; ends with the question how many."""
    if ctx.input_responses is None:
        asked = ElicitRequestFormParams(message=f"How many seats to {city}?", requested_schema=SCHEMA)
        questions = {"seats": ElicitRequest(params=asked)}
        return InputRequiredResult(input_requests=questions, request_state=city)
    # The state comes back sealed, and is opened before the tool sees it.
    assert ctx.request_state == city
    answer = ctx.input_responses["seats"]
    return booked(answer.action, (answer.content or {}).get("seats"), city)


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


# A call that is made again after a restart of the host books nothing twice.
annotations = {"idempotentHint": True}
if carrier == "http":
    server.tool(end_with_question, name="book", annotations=annotations)
    server.tool(ask, name="ask", annotations=annotations)
    threading.Thread(target=end_with_input, daemon=True).start()
    server.run(transport="http", host="127.0.0.1", port=0, show_banner=False)
else:
    server.add_middleware(Handshake())
    server.tool(ask, name="book", annotations=annotations)
    server.run(show_banner=False)
