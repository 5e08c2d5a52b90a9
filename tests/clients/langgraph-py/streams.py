"""Streams of runs, mode by mode."""

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from checks import INPUT, QUESTION, asked, is_uuid, same, true

#: What `agent` tells of its steps until it asks.
PROGRESS = [
    ("stream_message", "start"),
    ("stream_message", "end"),
    ("call_tool", "start"),
    ("call_tool", "end"),
    ("ask_human", "start"),
]


def of(parts: list[StreamPart], event: str) -> list[dict]:
    """The data of an event, in order."""
    return [part.data for part in parts if part.event == event]


def growing(parts: list[StreamPart], message_id: str) -> list[str]:
    """The pieces of a message."""
    pieces = [data for data in of(parts, "messages") if data[0]["id"] == message_id]
    return [message["content"] for message, _ in pieces]


async def every_mode(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    told = []
    stream = client.runs.stream(
        thread_id,
        "agent",
        input=INPUT,
        stream_mode=["values", "updates", "messages-tuple", "custom"],
        on_run_created=told.append,
    )
    parts = [part async for part in stream]
    same("the first event", parts[0].event, "metadata")
    [run] = told
    same("the run that headers name", run["run_id"], parts[0].data["run_id"])
    same("no errors", of(parts, "error"), [])

    steps = [(data["step"], data["phase"]) for data in of(parts, "custom")]
    same("custom events", steps, PROGRESS)
    same("their name", {data["name"] for data in of(parts, "custom")}, {"progress"})

    updates = of(parts, "updates")
    nodes = [next(iter(data)) for data in updates]
    same("updates", nodes, ["stream_message", "call_tool", "__interrupt__"])
    same("an update", updates[0]["stream_message"]["items"], ["streamed"])
    same("the question", updates[2]["__interrupt__"][0]["value"], QUESTION)

    values = of(parts, "values")
    same("values before a step", values[0]["value"], "init")
    same("values after all", values[-1]["items"], ["streamed", "tool"])

    pieces = growing(parts, "ai-msg-1")
    same("a message in pieces", ("".join(pieces), len(pieces) > 1), ("Hello, world!", True))
    [(_, metadata), *_] = of(parts, "messages")
    same("their node", metadata["langgraph_node"], "stream_message")
    seen = {message["id"] for message, _ in of(parts, "messages")}
    true("a message that was not streamed is there too", "ai-msg-2" in seen)

    ids = [part.id for part in parts]
    same("ids are all different", len(set(ids)), len(ids))
    return {"events": [part.event for part in parts]}


async def a_graph_inside(client: LangGraphClient) -> list[str]:
    thread_id, _ = await asked(client)
    stream = client.runs.stream(
        thread_id,
        "agent",
        command={"resume": "yes"},
        stream_mode=["values", "updates", "custom"],
        stream_subgraphs=True,
    )
    parts = [part async for part in stream]
    inside = {part.event for part in parts if "|" in part.event}
    namespaces = {event.split("|", 1)[1] for event in inside}
    same("namespaces", len(namespaces), 1)
    [namespace] = namespaces
    node, task = namespace.split(":")
    same("the node around it", node, "run_subgraph")
    # Behind the task there may be the place of the call that runs the graph.
    true("its task is a UUID", is_uuid(task.split(".")[0]))
    [update] = of(parts, f"updates|{namespace}")
    same("what it wrote", update["sub"]["note"], "ran")
    progress = [data["step"] for data in of(parts, f"custom|{namespace}")]
    same("its progress", progress, ["sub_node", "sub_node"])
    nodes = [next(iter(data)) for data in of(parts, "updates")]
    same("updates", nodes, ["ask_human", "run_subgraph"])
    [answer] = [data["answer"] for data in of(parts, "custom") if "answer" in data]
    same("the answer in the stream", answer, "yes")
    return [part.event for part in parts]


async def the_tokens_of_an_answer(client: LangGraphClient) -> list[str]:
    say = {"messages": [{"role": "user", "content": "search for v3"}]}
    stream = client.runs.stream(None, "tools_agent", input=say, stream_mode="messages-tuple")
    parts = [part async for part in stream]
    same("the answer", "".join(growing(parts, "ai-tools-done")), "done.")
    tools = [message for message, _ in of(parts, "messages") if message["type"] == "tool"]
    same("answers of tools", [tool["content"] for tool in tools], ["result for 'v3'"])
    return [part.event for part in parts]
