"""Runs without any delay: they pause or end before a client has opened what it reads them by. Each is
read over HTTP, and over a WebSocket."""

import asyncio

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, TRANSPORTS, same, typed_stream

#: What `agent` streams until it asks.
SAID = ["Hello, world!"]

#: The steps of `agent` until it asks and behind the answer, and those of `subgraph`.
STEPS = ["stream_message"] * 2 + ["call_tool"] * 2 + ["ask_human"]
FURTHER_STEPS = ["ask_human"] + ["run_subgraph"] + ["sub_node"] * 2 + ["run_subgraph"]
SUBGRAPH_STEPS = ["sub_node", "sub_node"]

#: Between two events that a run owes. It is no measure of speed: a stream that does not end must
#: not look like a slow machine.
TIMEOUT_S = 20


async def _messages(thread) -> list[str]:
    messages = [message async for message in thread.messages]
    return ["".join([piece async for piece in message.text]) for message in messages]


async def _steps(thread) -> list[str]:
    return [data["step"] async for data in thread.extensions["progress"]]


async def a_run_that_pauses(client: LangGraphClient) -> int:
    """Two clients, since the projections of one share a connection: opened at once, the first of them
    may wait for ever for a connection that the second has closed."""
    for transport in TRANSPORTS:
        async with (
            typed_stream(client, "agent", transport=transport) as one,
            typed_stream(client, "agent", transport=transport) as other,
            asyncio.timeout(TIMEOUT_S),
        ):
            said, steps = await asyncio.gather(_paused(one, _messages), _paused(other, _steps))
        same(f"the messages over {transport}", said, SAID)
        same(f"the steps over {transport}", steps, STEPS)
    return 2 * len(TRANSPORTS)


async def _paused(thread, read):
    await thread.run.start(input=INPUT)
    return await read(thread)


async def a_run_behind_another(client: LangGraphClient) -> int:
    """The connections of the first run are open when the second is asked for."""
    for transport in TRANSPORTS:
        async with typed_stream(client, "agent", transport=transport) as thread:
            async with asyncio.timeout(TIMEOUT_S):
                await thread.run.start(input=INPUT)
                same(f"the first steps over {transport}", await _steps(thread), STEPS)
                await thread.run.respond("yes")
                further = await _steps(thread)
                same(f"the further steps over {transport}", further, FURTHER_STEPS)
    return len(TRANSPORTS)


async def a_run_that_ends(client: LangGraphClient) -> int:
    for transport in TRANSPORTS:
        async with typed_stream(client, "subgraph", transport=transport) as thread:
            async with asyncio.timeout(TIMEOUT_S):
                await thread.run.start(input={"messages": [], "note": ""})
                same(f"the steps over {transport}", await _steps(thread), SUBGRAPH_STEPS)
        async with typed_stream(client, "tools_agent", transport=transport) as thread:
            async with asyncio.timeout(TIMEOUT_S):
                say = {"messages": [{"role": "user", "content": "search"}]}
                await thread.run.start(input=say)
                same(f"the messages over {transport}", await _messages(thread), ["done."])
    return 2 * len(TRANSPORTS)
