"""A person in the loop of `agent`: answers, and breakpoints."""

import inspect
from typing import Any

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, QUESTION, asked, needs, refused, same, texts, true

#: An answer, and what the graph says of it.
ANSWERS: list[tuple[Any, str]] = [
    ("yes", "yes"),
    (True, "True"),
    (3, "3"),
    (1.5, "1.5"),
    ({"a": 1}, "{'a': 1}"),
    (["x", None], "['x', None]"),
]


async def answers_of_every_kind(client: LangGraphClient) -> list[str]:
    said = []
    for answer, text in ANSWERS:
        thread_id, _ = await asked(client)
        values = await client.runs.wait(thread_id, "agent", command={"resume": answer})
        same("items", values["items"], ["streamed", "tool", "asked", "sub"])
        expected = [("ai", f"Human said: {text}"), ("ai", "from subgraph")]
        same("messages", texts(values)[3:], expected)
        same("open questions", values.get("__interrupt__", []), [])
        same("the thread", (await client.threads.get(thread_id))["status"], "idle")
        said.append(expected[0][1])
    return said


async def an_answer_by_id(client: LangGraphClient) -> dict:
    thread_id, values = await asked(client)
    [question] = values["__interrupt__"]
    command = {"resume": {question["id"]: "yes"}}
    values = await client.runs.wait(thread_id, "agent", command=command)
    same("the answer", texts(values)[3], ("ai", "Human said: yes"))
    same("runs", len(await client.runs.list(thread_id)), 2)
    return values


async def an_answer_counts_once(client: LangGraphClient) -> dict:
    thread_id, values = await asked(client)
    [question] = values["__interrupt__"]
    by_id = {"resume": {question["id"]: "yes"}}
    ended = await client.runs.wait(thread_id, "agent", command=by_id)
    for again in (by_id, {"resume": "yes"}):
        values = await client.runs.wait(thread_id, "agent", command=again)
        same("the values", values, ended)
    same("the thread", (await client.threads.get(thread_id))["status"], "idle")
    return ended


async def a_strict_answer_is_refused_later(client: LangGraphClient) -> str:
    takes = inspect.signature(client.runs.wait).parameters
    needs("strict answers", "strict_resume" in takes)
    thread_id, values = await asked(client)
    [question] = values["__interrupt__"]
    answer = {"command": {"resume": {question["id"]: "yes"}}, "strict_resume": True}
    await client.runs.wait(thread_id, "agent", **answer)
    again = client.runs.wait(thread_id, "agent", **answer)
    return await refused("an answer that comes twice", again, 400)


async def a_breakpoint_is_passed(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    values = await client.runs.wait(
        thread_id, "agent", input=INPUT, interrupt_before=["call_tool"]
    )
    same("items before it", values["items"], ["streamed"])
    true("a breakpoint is no question", "__interrupt__" not in values)
    state = await client.threads.get_state(thread_id)
    same("what comes next", state["next"], ["call_tool"])
    values = await client.runs.wait(thread_id, "agent", input=None)
    same("items behind it", values["items"], ["streamed", "tool"])
    same("the question", values["__interrupt__"][0]["value"], QUESTION)
    return values
