"""Streams of runs, mode by mode."""

from datetime import datetime

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from checks import INPUT, QUESTION, asked, is_uuid, same, texts, true

#: Modes of one run. `messages` and `messages-tuple` have events of different names.
MODES = [
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "events",
    "tasks",
    "checkpoints",
    "debug",
]

#: The nodes of `agent` that run until it asks.
NODES = ["stream_message", "call_tool", "ask_human"]

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
        stream_mode=MODES,
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

    whole_messages(parts)
    named_events(of(parts, "events"), run["run_id"])
    tasks_in_pairs(of(parts, "tasks"))
    checkpoints_in_a_chain(parts)
    debug_has_both(parts)

    ids = [part.id for part in parts]
    same("ids are all different", len(set(ids)), len(ids))
    return {"events": [part.event for part in parts]}


def whole_messages(parts: list[StreamPart]) -> None:
    """Mode `messages`."""
    partial = [message["content"] for [message] in of(parts, "messages/partial")]
    same("a message that grows", partial, ["Hello,", "Hello, world!"])
    whole = [message for [message] in of(parts, "messages/complete")]
    said = [("ai", "Hello, world!"), ("ai", ""), ("tool", "result for 'v3'")]
    same("whole messages", texts({"messages": whole}), said)
    metadata: dict[str, dict] = {}
    for data in of(parts, "messages/metadata"):
        metadata |= data
    same("messages with metadata", set(metadata), {message["id"] for message in whole})
    nodes = [metadata[message["id"]]["metadata"]["langgraph_node"] for message in whole]
    same("their nodes", nodes, ["stream_message", "call_tool", "call_tool"])


def named_events(events: list[dict], run_id: str) -> None:
    """Mode `events`."""
    fields = {"event", "name", "run_id", "data", "tags", "metadata", "parent_ids"}
    same("fields of events", {frozenset(event) for event in events}, {frozenset(fields)})

    def named(kind: str) -> list[dict]:
        return [event for event in events if event["event"] == kind]

    begun, ended = named("on_chain_start"), named("on_chain_end")
    same("what begins", [event["name"] for event in begun], ["agent", *NODES])
    same("what ends", [event["name"] for event in ended], [*NODES[:2], "agent"])
    same(
        "ids at the end",
        [event["run_id"] for event in ended],
        [begun[index]["run_id"] for index in (1, 2, 0)],
    )
    same("the id of the run", (begun[0]["run_id"], begun[0]["parent_ids"]), (run_id, []))
    same("the run around nodes", [event["parent_ids"] for event in begun[1:]], [[run_id]] * 3)
    chunks = [event["data"]["chunk"]["items"] for event in named("on_chain_stream")]
    same("updates of nodes", chunks, [["streamed"], ["tool"]])
    same("the output", ended[-1]["data"]["output"]["items"], ["streamed", "tool"])

    pieces = [event["data"]["chunk"]["content"] for event in named("on_chat_model_stream")]
    same("pieces of a message", pieces, ["Hello,", " world!"])
    [start], [end] = named("on_chat_model_start"), named("on_chat_model_end")
    same("its id at the end", end["run_id"], start["run_id"])
    same("the whole message", end["data"]["output"]["content"], "Hello, world!")
    steps = [(event["data"]["step"], event["data"]["phase"]) for event in named("on_custom_event")]
    same("custom events", steps, PROGRESS)


def tasks_in_pairs(tasks: list[dict]) -> None:
    """Mode `tasks`: a start and a result of each task."""
    begun = [data for data in tasks if "input" in data]
    ended = [data for data in tasks if "result" in data]
    same("how many there are", len(tasks), len(begun) + len(ended))
    same("tasks that begin", [data["name"] for data in begun], NODES)
    same("their triggers", {len(data["triggers"]) for data in begun}, {1})
    same(
        "their inputs",
        [data["input"]["items"] for data in begun],
        [[], ["streamed"], ["streamed", "tool"]],
    )
    pairs = [(data["id"], data["name"]) for data in begun]
    same("tasks that end", [(data["id"], data["name"]) for data in ended], pairs)
    same("their errors", [data["error"] for data in ended], [None] * 3)
    results = [data["result"].get("items") for data in ended]
    same("their results", results, [["streamed"], ["tool"], None])
    questions = [[one["value"] for one in data["interrupts"]] for data in ended]
    same("their questions", questions, [[], [], [QUESTION]])


def checkpoints_in_a_chain(parts: list[StreamPart]) -> None:
    """Mode `checkpoints`: the state before the input, then that of each step."""
    found = of(parts, "checkpoints")
    metadata = [(data["metadata"]["step"], data["metadata"]["source"]) for data in found]
    same("steps", metadata, [(-1, "input"), (0, "input"), (1, "loop"), (2, "loop")])
    same(
        "what is next", [data["next"] for data in found], [[node] for node in ["__start__", *NODES]]
    )
    names = [[task["name"] for task in data["tasks"]] for data in found]
    same("their tasks", names, [data["next"] for data in found])
    ids = [task["id"] for data in found[1:] for task in data["tasks"]]
    begun = [data["id"] for data in of(parts, "tasks") if "input" in data]
    same("ids of their tasks", ids, begun)
    parents = [data["parent_config"] for data in found]
    same("their parents", parents, [None, *(data["config"] for data in found[:-1])])
    places = {data["config"]["configurable"]["checkpoint_id"] for data in found}
    same("ids of checkpoints", len(places), len(found))
    values = [data["values"].get("value") for data in found]
    same("their values", values, [None, "init", "x", "x"])


def debug_has_both(parts: list[StreamPart]) -> None:
    """Mode `debug`: the events of the modes `tasks` and `checkpoints`."""
    debug = of(parts, "debug")
    for data in debug:
        true("a time with its zone", datetime.fromisoformat(data["timestamp"]).tzinfo)

    made = [data for data in debug if data["type"] == "checkpoint"]
    checkpoints = of(parts, "checkpoints")
    same("steps of checkpoints", [data["step"] for data in made], [-1, 0, 1, 2])
    # A payload has the addresses of the checkpoint and of its parent in addition.
    same(
        "checkpoints",
        [data["payload"] for data in made],
        [data["payload"] | plain for data, plain in zip(made, checkpoints, strict=True)],
    )

    rest = [data for data in debug if data["type"] != "checkpoint"]
    same("tasks", [data["payload"] for data in rest], of(parts, "tasks"))
    types = ["task" if "input" in data["payload"] else "task_result" for data in rest]
    same("types of tasks", [data["type"] for data in rest], types)
    same("steps of tasks", [data["step"] for data in rest], [1, 1, 2, 2, 3, 3])


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
