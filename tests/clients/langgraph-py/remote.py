"""Graphs of the server as `RemoteGraph`s: run like local graphs, and as nodes of local graphs."""

import asyncio
import os
import uuid
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import LangGraphClient

from checks import INPUT, QUESTION, Lacks, is_uuid, same, texts, true
from cut import url_of


class State(TypedDict, total=False):
    """The channels of a local graph. A graph of the server gets those that have a value."""

    messages: list
    note: str
    value: str
    items: list


def of_new_thread() -> dict[str, Any]:
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


def around(remote: RemoteGraph) -> CompiledStateGraph:
    """A local graph with a graph of the server as its only node."""
    builder = StateGraph(State)
    builder.add_node("remote", remote)
    builder.add_edge(START, "remote")
    return builder.compile(checkpointer=InMemorySaver())


async def a_graph_is_run_and_answered(client: LangGraphClient) -> dict:
    graph, config = RemoteGraph("agent", client=client), of_new_thread()
    values = await graph.ainvoke(INPUT, config)
    same("items", values["items"], ["streamed", "tool"])
    same("the question", values["__interrupt__"][0]["value"], QUESTION)
    state = await graph.aget_state(config)
    same("what comes next", state.next, ("ask_human",))
    same("the questions of the state", [one.value for one in state.interrupts], [QUESTION])
    nodes = [
        next(iter(update))
        async for update in graph.astream(Command(resume="yes"), config, stream_mode="updates")
    ]
    same("updates", nodes, ["ask_human", "run_subgraph"])
    ended = (await graph.aget_state(config)).values
    same("items at the end", ended["items"], ["streamed", "tool", "asked", "sub"])
    same("messages", texts(ended)[3:], [("ai", "Human said: yes"), ("ai", "from subgraph")])
    return ended


async def a_graph_is_drawn_and_edited(client: LangGraphClient) -> list[tuple]:
    graph, config = RemoteGraph("agent", client=client), of_new_thread()
    drawing = await graph.aget_graph()
    true("its nodes", {"stream_message", "ask_human"} <= set(drawing.nodes))
    edges = {(edge.source, edge.target) for edge in drawing.edges}
    true("an edge", ("stream_message", "call_tool") in edges)
    await graph.ainvoke(INPUT, config)
    edited = await graph.aupdate_state(config, {"value": "edited"}, as_node="stream_message")
    true("the checkpoint of the edit", is_uuid(edited["configurable"]["checkpoint_id"]))
    state = await graph.aget_state(edited)
    same("the edit", (state.values["value"], state.next), ("edited", ("call_tool",)))
    past = [state.next async for state in graph.aget_state_history(config, limit=3)]
    same("what came next, newest first", past, [("call_tool",), ("ask_human",), ("call_tool",)])
    return past


async def a_run_of_a_program_without_asyncio(client: LangGraphClient) -> dict:
    def run() -> dict:
        key = os.environ.get("WATTLE_API_KEY")
        with get_sync_client(url=url_of(client), api_key=key) as sync_client:
            graph = RemoteGraph("factory_agent", sync_client=sync_client)
            return graph.invoke({"text": "hi"}, context={"access_context": "here"})

    values = await asyncio.to_thread(run)
    same("text", values["text"], "hi echoed")
    same("the context", values["access_context"], "here")
    return values


async def a_failure_is_an_exception(client: LangGraphClient) -> str:
    graph = RemoteGraph("agent", client=client, config={"recursion_limit": 1})
    try:
        values = await graph.ainvoke(INPUT, of_new_thread())
    except RemoteException as error:
        true(f"it says why: {error}", "GraphRecursionError" in str(error))
        return str(error)
    raise AssertionError(f"one step was enough: {values!r}")


async def a_node_of_a_local_graph(client: LangGraphClient) -> list[str]:
    local = around(RemoteGraph("subgraph", client=client))
    config = of_new_thread()
    stream = local.astream(
        {"messages": [], "note": ""}, config, stream_mode="updates", subgraphs=True
    )
    seen = [(len(namespace), next(iter(update))) async for namespace, update in stream]
    same("updates, with their depth", seen, [(1, "sub"), (0, "remote")])
    ended = (await local.aget_state(config)).values
    same("what it wrote", (ended["note"], texts(ended)), ("ran", [("ai", "from subgraph")]))
    return [node for _, node in seen]


async def an_interrupt_below_a_local_graph(client: LangGraphClient) -> list[str]:
    remote = RemoteGraph("agent", client=client)
    local, config = around(remote), of_new_thread()
    values = await local.ainvoke(INPUT, config)
    questions = [question.value for question in values["__interrupt__"]]
    same("the question", questions, [QUESTION])
    state = await remote.aget_state(config)
    same("what comes next on the server", state.next, ("ask_human",))
    return questions


async def typed_events(client: LangGraphClient) -> dict:
    say = {"messages": [{"role": "user", "content": "search for v3"}]}
    try:
        opened = await RemoteGraph("tools_agent", client=client).astream_events(say, version="v3")
    except NotImplementedError as error:
        raise Lacks("typed events of a remote graph") from error
    async with opened as run:
        values = await run.output()
    same("the last message", texts(values)[-1], ("ai", "done."))
    return values
