"""Runs without any delay: they pause or end before a client has opened what it reads them by."""

import asyncio

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, same, typed_stream

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
    async with (
        typed_stream(client, "agent") as one,
        typed_stream(client, "agent") as other,
        asyncio.timeout(TIMEOUT_S),
    ):
        said, steps = await asyncio.gather(_paused(one, _messages), _paused(other, _steps))
    same("the messages", said, SAID)
    same("the steps", steps, STEPS)
    return 2


async def _paused(thread, read):
    await thread.run.start(input=INPUT)
    return await read(thread)


async def a_run_behind_another(client: LangGraphClient) -> int:
    """The connections of the first run are open when the second is asked for."""
    async with typed_stream(client, "agent") as thread:
        async with asyncio.timeout(TIMEOUT_S):
            await thread.run.start(input=INPUT)
            same("the first steps", await _steps(thread), STEPS)
            await thread.run.respond("yes")
            same("the further steps", await _steps(thread), FURTHER_STEPS)
    return 1


async def a_run_that_ends(client: LangGraphClient) -> int:
    async with typed_stream(client, "subgraph") as thread:
        async with asyncio.timeout(TIMEOUT_S):
            await thread.run.start(input={"messages": [], "note": ""})
            same("the steps", await _steps(thread), SUBGRAPH_STEPS)
    async with typed_stream(client, "tools_agent") as thread:
        async with asyncio.timeout(TIMEOUT_S):
            await thread.run.start(input={"messages": [{"role": "user", "content": "search"}]})
            same("the messages", await _messages(thread), ["done."])
    return 2
