"""States: of now, of the past, edited, and continued."""

from inspect import signature

from langgraph_sdk.client import LangGraphClient

from checks import QUESTION, asked, is_uuid, needs, same, texts, true


async def a_thread_that_waits(client: LangGraphClient) -> dict:
    thread_id, values = await asked(client)
    state = await client.threads.get_state(thread_id)
    same("items", state["values"]["items"], values["items"])
    same("what comes next", state["next"], ["ask_human"])
    [task] = state["tasks"]
    same("the task", task["name"], "ask_human")
    same("its question", task["interrupts"][0]["value"], QUESTION)
    same("the questions of the state", state["interrupts"], task["interrupts"])
    checkpoint = state["checkpoint"]
    same("its thread", checkpoint["thread_id"], thread_id)
    same("its namespace", checkpoint["checkpoint_ns"], "")
    true("its id is a UUID", is_uuid(checkpoint["checkpoint_id"]))
    await client.runs.wait(thread_id, "agent", command={"resume": "yes"})
    state = await client.threads.get_state(thread_id)
    same("what comes next at the end", (state["next"], state["tasks"]), ([], []))
    return state


async def fields_are_selected(client: LangGraphClient) -> dict:
    threads = client.threads
    needs("fields of a state", "select" in signature(threads.get_state).parameters)
    thread_id, values = await asked(client)
    selected = await threads.get_state(thread_id, select=["values", "next"])
    same("what is selected", set(selected), {"values", "next"})
    same("items", selected["values"]["items"], values["items"])
    [newest] = await threads.get_history(thread_id, limit=1, select=["next"])
    same("what is selected of the history", newest, {"next": ["ask_human"]})
    return selected


async def history_is_a_chain(client: LangGraphClient) -> list[list[str]]:
    thread_id, _ = await asked(client)
    await client.runs.wait(thread_id, "agent", command={"resume": "yes"})
    states = await client.threads.get_history(thread_id, limit=20)
    nodes = [[], ["run_subgraph"], ["ask_human"], ["call_tool"], ["stream_message"]]
    nodes.append(["__start__"])
    same("what came next, newest first", [state["next"] for state in states], nodes)
    ids = [state["checkpoint"]["checkpoint_id"] for state in states]
    parents = [state["parent_checkpoint"] for state in states]
    same("parents", [parent["checkpoint_id"] for parent in parents[:-1]], ids[1:])
    same("the parent of the first", parents[-1], None)
    same("ids in order", ids, sorted(ids, reverse=True))

    before = await client.threads.get_history(thread_id, limit=1, before=states[1]["checkpoint"])
    same("the one before", before[0]["checkpoint"], states[2]["checkpoint"])
    for state in (states[2], states[-1]):
        checkpoint_id = state["checkpoint"]["checkpoint_id"]
        by_id = await client.threads.get_state(thread_id, checkpoint_id=checkpoint_id)
        same("a state by id", by_id["values"], state["values"])
        by_checkpoint = await client.threads.get_state(thread_id, state["checkpoint"])
        same("a state by checkpoint", by_checkpoint["values"], state["values"])
    return [state["next"] for state in states]


async def a_state_is_edited(client: LangGraphClient) -> dict:
    thread_id, _ = await asked(client)
    edited = await client.threads.update_state(
        thread_id, {"value": "edited", "items": ["by hand"]}, as_node="stream_message"
    )
    state = await client.threads.get_state(thread_id)
    checkpoint_id = edited["checkpoint"]["checkpoint_id"]
    same("the checkpoint of the edit", state["checkpoint"]["checkpoint_id"], checkpoint_id)
    same("the value", state["values"]["value"], "edited")
    same("items", state["values"]["items"], ["streamed", "tool", "by hand"])
    same("what comes next", state["next"], ["call_tool"])
    values = await client.runs.wait(thread_id, "agent", input=None)
    same("items after it", values["items"], ["streamed", "tool", "by hand", "tool"])
    same("the question", values["__interrupt__"][0]["value"], QUESTION)
    return values


async def a_run_from_the_past(client: LangGraphClient) -> dict:
    thread_id, _ = await asked(client)
    await client.runs.wait(thread_id, "agent", command={"resume": "yes"})
    states = await client.threads.get_history(thread_id, limit=20)
    [past] = [state for state in states if state["next"] == ["ask_human"]]
    values = await client.runs.wait(
        thread_id, "agent", input=None, checkpoint_id=past["checkpoint"]["checkpoint_id"]
    )
    same("it asks again", values["__interrupt__"][0]["value"], QUESTION)
    values = await client.runs.wait(thread_id, "agent", command={"resume": "no"})
    same("another answer", texts(values)[3], ("ai", "Human said: no"))
    same("items", values["items"], ["streamed", "tool", "asked", "sub"])
    return values
