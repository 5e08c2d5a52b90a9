"""The graphs of the cases, with nodes that do nearly nothing."""

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

# One more than the steps of the graph, because the input counts as a step.
ROOM = 2


class Line(TypedDict):
    document: dict[str, Any]


class FanOut(TypedDict):
    documents: Annotated[list, operator.add]
    total: int


class Log(TypedDict):
    n: int
    log: Annotated[list, operator.add]


class Graph:
    """A graph with its input, its recursion limit and a check of the result."""

    def __init__(self, builder, steps, limit, give, check):
        self.builder, self.steps, self.limit = builder, steps, limit
        self.give, self.check = give, check


def build(case: str, order: dict) -> Graph:
    return builders()[case](order, lambda node: node)


def build_async(case: str, order: dict) -> Graph:
    return builders()[case](order, asynchronous)


def builders() -> dict:
    return {"line": line, "fan-out": fan_out, "loop": loop, "history": loop, "append": append}


def asynchronous(node):
    async def run(state):
        return node(state)

    return run


def touch(state):
    document = state["document"]
    return {"document": {**document, "n": document["n"] + 1}}


def document(order):
    return {"n": 0, "text": text(order["text_bytes"], 0)}


def line(order, adapt) -> Graph:
    nodes = order["nodes"]
    builder = StateGraph(Line)
    names = [f"n{index}" for index in range(nodes)]
    for name in names:
        builder.add_node(name, adapt(touch))
    for left, right in zip([START, *names], [*names, END]):
        builder.add_edge(left, right)
    return Graph(
        builder,
        nodes,
        nodes + ROOM,
        lambda: {"document": document(order)},
        lambda state: state["document"]["n"] == nodes,
    )


def fan_out(order, adapt) -> Graph:
    sends = order["sends"]

    def split(_state):
        return {"total": 0}

    def spread(_state):
        return [Send("work", {"document": document(order)}) for _ in range(sends)]

    def work(state):
        return {"documents": [touch(state)["document"]]}

    def join(state):
        return {"total": sum(document["n"] for document in state["documents"])}

    builder = StateGraph(FanOut)
    for node in (split, work, join):
        builder.add_node(node.__name__, adapt(node))
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", spread, ["work"])
    builder.add_edge("work", "join")
    builder.add_edge("join", END)
    return Graph(
        builder,
        sends + 2,
        sends + ROOM,
        lambda: {"documents": []},
        lambda state: state["total"] == sends,
    )


def loop(order, adapt) -> Graph:
    turns = order["turns"]
    builder = StateGraph(Line)
    builder.add_node("touch", adapt(touch))
    builder.add_edge(START, "touch")
    builder.add_conditional_edges(
        "touch", lambda state: "touch" if state["document"]["n"] < turns else END, ["touch", END]
    )
    return Graph(
        builder,
        turns,
        turns + ROOM,
        lambda: {"document": document(order)},
        lambda state: state["document"]["n"] == turns,
    )


def append(order, adapt) -> Graph:
    items, size = order["items"], order["text_bytes"]

    def add(state):
        return {"n": state["n"] + 1, "log": [text(size, state["n"])]}

    builder = StateGraph(Log)
    builder.add_node("add", adapt(add))
    builder.add_edge(START, "add")
    builder.add_conditional_edges(
        "add", lambda state: "add" if state["n"] < items else END, ["add", END]
    )
    return Graph(
        builder,
        items,
        items + ROOM,
        lambda: {"n": 0, "log": []},
        lambda state: len(state["log"]) == items,
    )


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def text(size: int, seed: int) -> str:
    """Returns pseudorandom letters, so that compression gives no store an advantage."""
    state, letters = seed + 1, []
    for _ in range(size):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        letters.append(LETTERS[state >> 58])
    return "".join(letters)
