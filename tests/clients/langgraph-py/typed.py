"""Typed events of a thread: over HTTP, and over a WebSocket."""

import asyncio

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, TRANSPORTS, begun, same, texts, true, typed_stream

#: Everything is over long before; what a stream owes must not look like a slow machine.
TIMEOUT_S = 25

#: What the tool of `tools_agent` answers.
TOOL_MESSAGE = {
    "type": "tool",
    "status": "success",
    "content": "result for 'v3'",
    "tool_call_id": "tc-1",
    "name": "search",
}


async def an_answer(client: LangGraphClient) -> list:
    said = []
    for transport in TRANSPORTS:
        opened = typed_stream(client, "agent", transport=transport)
        async with opened as thread, asyncio.timeout(TIMEOUT_S):
            await thread.run.start(input=INPUT, metadata={"who": transport})
            async for _ in thread.values:
                if thread.interrupted:
                    break
            same("how many questions", len(thread.interrupts), 1)
            await thread.run.respond("yes")
            values = await thread.output
        same("items", values["items"], ["streamed", "tool", "asked", "sub"])
        said.append(texts(values))
        runs = await client.runs.list(thread.thread_id)
        same("runs", [run["status"] for run in runs], ["success", "success"])
    same("both ways", said[0], said[1])
    return said[0]


async def messages_in_pieces(client: LangGraphClient) -> list[str]:
    texts_seen = []
    for transport in TRANSPORTS:
        opened = typed_stream(client, "tools_agent", transport=transport)
        async with opened as thread, asyncio.timeout(TIMEOUT_S):
            say = {"messages": [{"role": "user", "content": "search for v3"}]}
            await thread.run.start(input=say)
            # Their pieces come as the messages do, so these have to be taken first.
            messages = [message async for message in thread.messages]
            for message in messages:
                texts_seen.append("".join([piece async for piece in message.text]))
    true("the answer is there, both ways", texts_seen.count("done.") == len(TRANSPORTS))
    return texts_seen


async def tools_and_custom_events(client: LangGraphClient) -> dict:
    async with typed_stream(client, "tools_agent") as thread:
        async with asyncio.timeout(TIMEOUT_S):
            say = {"messages": [{"role": "user", "content": "search for v3"}]}
            await thread.run.start(input=say)
            calls = [call async for call in thread.tool_calls]
            output = await calls[0].output
    same("calls", [(call.name, call.tool_call_id) for call in calls], [("search", "tc-1")])
    same("their input", calls[0].input, {"query": "v3"})
    shown = {name: output[name] for name in ("type", "status", "content", "tool_call_id", "name")}
    same("the answer as a message", shown, TOOL_MESSAGE)
    async with typed_stream(client, "subgraph") as thread:
        async with asyncio.timeout(TIMEOUT_S):
            await thread.run.start(input={"messages": [], "note": ""})
            steps = [data["step"] async for data in thread.extensions["progress"]]
    same("the steps", steps, ["sub_node", "sub_node"])
    tree = await typed_stream(client, "agent").agent.get_tree()
    true("the graph has nodes", {node["id"] for node in tree["nodes"]} > {"call_tool"})
    return {"steps": steps}


async def all_runs_of_a_thread(client: LangGraphClient) -> list[str]:
    """The older way: events of whatever runs on a thread, for as long as one listens."""
    thread_id, run_id = await begun(client)
    stream = await client.threads.join_stream(thread_id, last_event_id="-1")
    seen = []
    async with asyncio.timeout(TIMEOUT_S):
        async for part in stream:
            seen.append(part.event)
            if part.event == "metadata":
                same("the run", part.data["run_id"], run_id)
                break
    await stream.aclose()
    await client.runs.cancel(thread_id, run_id, wait=True)
    return seen
