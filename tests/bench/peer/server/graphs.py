"""Two of the reference graphs on LangGraph, with the names, nodes, states and streams of tests/clients/graphs."""

import operator
from typing import Annotated, TypedDict

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class Echo(TypedDict):
    text: str
    access_context: str
    is_for_execution: bool


class Conversation(TypedDict):
    messages: Annotated[list, add_messages]
    value: str
    items: Annotated[list, operator.add]


class Note(TypedDict):
    messages: Annotated[list, add_messages]
    note: str


async def echo(state: Echo) -> dict:
    return {
        "text": f"{state['text']} echoed",
        "access_context": "threads.create_run",
        "is_for_execution": True,
    }


def progress(step: str, phase: str, **more) -> None:
    get_stream_writer()({"name": "progress", "step": step, "phase": phase, **more})


async def stream_message(state: Conversation) -> dict:
    progress("stream_message", "start")
    said = AIMessage("Hello, world!", id="ai-msg-1")
    message = await GenericFakeChatModel(messages=iter([said])).ainvoke(state["messages"])
    progress("stream_message", "end")
    return {"messages": [message], "value": "x", "items": ["streamed"]}


async def call_tool(state: Conversation) -> dict:
    progress("call_tool", "start")
    call = {"id": "tc-1", "name": "search", "args": {"query": "v3"}}
    asking = AIMessage("", id="ai-msg-2", tool_calls=[call])
    answer = ToolMessage("result for 'v3'", tool_call_id="tc-1")
    progress("call_tool", "end")
    return {"messages": [asking, answer], "items": ["tool"]}


async def ask_human(state: Conversation) -> dict:
    progress("ask_human", "start")
    answer = interrupt("Are we good?")
    progress("ask_human", "end", answer=answer)
    said = AIMessage(f"Human said: {answer}", id="ai-msg-3")
    return {"messages": [said], "items": ["asked"]}


async def sub(state: Note) -> dict:
    return {"messages": [AIMessage("from subgraph", id="sub-msg-1")], "note": "ran"}


async def run_subgraph(state: Conversation) -> dict:
    progress("run_subgraph", "start")
    inner = await subgraph.ainvoke({"messages": [], "note": ""})
    progress("run_subgraph", "end")
    return {"messages": inner["messages"], "items": ["sub"]}


def line(state: type, **nodes):
    """Returns a graph whose nodes run one after the other."""
    builder = StateGraph(state)
    for name, node in nodes.items():
        builder.add_node(name, node)
    names = list(nodes)
    for left, right in zip([START, *names], [*names, END]):
        builder.add_edge(left, right)
    return builder.compile()


factory_agent = line(Echo, echo=echo)
subgraph = line(Note, sub=sub)
agent = line(
    Conversation,
    stream_message=stream_message,
    call_tool=call_tool,
    ask_human=ask_human,
    run_subgraph=run_subgraph,
)
