"""Runs: waited for, listed, rejected, cancelled."""

import uuid

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, QUESTION, asked, begun, is_uuid, refused, same, texts, true


async def a_run_is_waited_for(client: LangGraphClient) -> dict:
    thread_id, values = await asked(client)
    same("items", values["items"], ["streamed", "tool"])
    same("value", values["value"], "x")
    said = [("ai", "Hello, world!"), ("ai", ""), ("tool", "result for 'v3'")]
    same("messages", texts(values), said)
    call = {"name": "search", "args": {"query": "v3"}, "id": "tc-1", "type": "tool_call"}
    same("the tool call", values["messages"][1]["tool_calls"], [call])
    same("what it answers", values["messages"][2]["tool_call_id"], "tc-1")
    [question] = values["__interrupt__"]
    same("the question", question["value"], QUESTION)
    [run] = await client.runs.list(thread_id)
    same("a run that asks has succeeded", run["status"], "success")
    thread = await client.threads.get(thread_id)
    same("the thread waits", thread["status"], "interrupted")
    same("its graph", thread["metadata"]["graph_id"], "agent")
    [[open_question]] = thread["interrupts"].values()
    same("its question", open_question["id"], question["id"])
    return values


async def a_run_without_a_thread(client: LangGraphClient) -> dict:
    values = await client.runs.wait(None, "factory_agent", input={"text": "hi"})
    same("text", values["text"], "hi echoed")
    same("access_context", values["access_context"], "threads.create_run")
    same("is_for_execution", values["is_for_execution"], True)
    return values


async def runs_are_listed(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    made = await client.runs.create(thread_id, "agent", input=INPUT, metadata={"who": "me"})
    run_id = made["run_id"]
    true("the id is a UUID", is_uuid(run_id))
    same("its thread", made["thread_id"], thread_id)
    # It may be over before the answer is read, or even made, but it has not failed.
    true("it has begun", made["status"] in ("pending", "running", "success"))
    values = await client.runs.join(thread_id, run_id)
    same("items", values["items"], ["streamed", "tool"])
    run = await client.runs.get(thread_id, run_id)
    same("its status", run["status"], "success")
    same("its metadata", run["metadata"]["who"], "me")
    same("the list", [one["run_id"] for one in await client.runs.list(thread_id)], [run_id])
    await client.runs.delete(thread_id, run_id)
    await refused("a deleted run", client.runs.get(thread_id, run_id), 404)
    return run


async def tools_answer(client: LangGraphClient) -> list:
    thread_id = (await client.threads.create())["thread_id"]
    say = {"messages": [{"role": "human", "content": "search for v3"}]}
    values = await client.runs.wait(thread_id, "tools_agent", input=say)
    said = [("human", "search for v3"), ("ai", ""), ("tool", "result for 'v3'"), ("ai", "done.")]
    same("messages", texts(values), said)
    tool = values["messages"][2]
    same("the tool", (tool["name"], tool["status"]), ("search", "success"))
    ids = [values["messages"][index]["id"] for index in (1, 3)]
    same("ids of the model's messages", ids, ["ai-tools-call", "ai-tools-done"])
    same("the thread", (await client.threads.get(thread_id))["status"], "idle")
    return values["messages"]


async def an_agent_inside_of_an_agent(client: LangGraphClient) -> list:
    thread_id = (await client.threads.create())["thread_id"]
    say = {"messages": ["research the v3 spec"]}
    values = await client.runs.wait(thread_id, "deep_agent", input=say)
    found = "v3 streaming is event-typed and thread-centric."
    task = ("human", "research the v3 spec")
    said = [task, ("ai", ""), ("tool", found), ("ai", "Research complete.")]
    same("messages", texts(values), said)
    return values["messages"]


async def a_broken_message_changes_nothing(client: LangGraphClient) -> str:
    thread_id, before = await asked(client)
    broken = {"messages": [{"role": "nobody", "content": "?"}]}
    wrong = client.runs.wait(thread_id, "agent", input=broken)
    said = await refused("a broken message", wrong, 422)
    state = await client.threads.get_state(thread_id)
    same("messages after it", len(state["values"]["messages"]), len(before["messages"]))
    unknown = client.runs.wait(thread_id, "no_such_agent", input=INPUT)
    await refused("an unknown assistant", unknown, 422)
    nowhere = client.runs.wait(str(uuid.uuid4()), "agent", input=INPUT)
    await refused("an unknown thread", nowhere, 404)
    return said


async def a_second_run_is_rejected(client: LangGraphClient) -> str:
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "stalling_agent", input={})
    second = client.runs.create(
        thread_id, "stalling_agent", input={}, multitask_strategy="reject"
    )
    said = await refused("a second run", second, 409)
    same("the thread", (await client.threads.get(thread_id))["status"], "busy")
    await client.runs.cancel(thread_id, run["run_id"], wait=True)
    return said


async def a_run_is_cancelled(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    made = await client.runs.create(thread_id, "stalling_agent", input={})
    await client.runs.cancel(thread_id, made["run_id"])
    values = await client.runs.join(thread_id, made["run_id"])
    same("what it wrote", values.get("items", []), [])
    run = await client.runs.get(thread_id, made["run_id"])
    same("a cancelled run is interrupted", run["status"], "interrupted")
    same("its thread", (await client.threads.get(thread_id))["status"], "interrupted")
    found = await client.threads.search(ids=[thread_id], status="interrupted")
    same("it is found so", [thread["thread_id"] for thread in found], [thread_id])
    return run


async def several_at_once(client: LangGraphClient) -> list[str]:
    say = [{"assistant_id": "factory_agent", "input": {"text": text}} for text in ("a", "b")]
    runs = await client.runs.create_batch(say)
    same("runs", len({run["run_id"] for run in runs}), 2)
    for run in runs:
        await client.runs.join(run["thread_id"], run["run_id"])
    return [run["run_id"] for run in runs]


async def several_are_cancelled(client: LangGraphClient) -> list[str]:
    thread_id, first = await begun(client)
    second = (await client.runs.create(thread_id, "stalling_agent", input={}))["run_id"]
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[second])
    same("the first goes on", (await client.runs.get(thread_id, first))["status"], "running")
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[first], action="rollback")
    await refused("a run that is taken back", client.runs.get(thread_id, first), 404)
    same("the second", (await client.runs.get(thread_id, second))["status"], "interrupted")
    nothing = client.runs.cancel_many(thread_id=thread_id, run_ids=[second])
    return [first, second, await refused("nothing to cancel", nothing, 404)]


async def a_failure_is_an_error_of_the_client(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    few = {"recursion_limit": 1}
    try:
        await client.runs.wait(thread_id, "agent", input=INPUT, config=few)
    except Exception as error:  # The client raises nothing more special.
        true(f"it says why: {error}", "limit" in str(error) or "step" in str(error))
    else:
        raise AssertionError("one step was enough")
    values = await client.runs.wait(
        thread_id, "agent", input=INPUT, config=few, raise_error=False
    )
    same("what it says", set(values["__error__"]), {"error", "message"})
    same("the thread", (await client.threads.get(thread_id))["status"], "error")
    parts = client.runs.stream(thread_id, "agent", input=INPUT, config=few)
    last = [part async for part in parts][-1]
    same("the last event", last.event, "error")
    same("what it says", set(last.data), {"error", "message"})
    return values


async def a_run_that_comes_later(client: LangGraphClient) -> str:
    thread_id = str(uuid.uuid4())
    made = await client.runs.create(
        thread_id, "agent", input=INPUT, if_not_exists="create", after_seconds=3600
    )
    same("it waits", made["status"], "pending")
    same("the thread", (await client.threads.get(thread_id))["status"], "busy")
    await client.runs.cancel(thread_id, made["run_id"])
    same("the thread after it", (await client.threads.get(thread_id))["status"], "idle")
    return made["run_id"]


async def what_a_run_is_told(client: LangGraphClient) -> list[dict]:
    say, here = {"text": "hi"}, {"access_context": "here"}
    ways = [{"context": here}, {"config": {"configurable": here, "tags": ["a"]}}]
    answers = [
        await client.runs.wait(None, "factory_agent", input=say, durability=durability, **way)
        for way, durability in zip(ways, ("sync", "exit"), strict=True)
    ]
    same("the context", [one["access_context"] for one in answers], ["here", "here"])
    both = client.runs.wait(
        None, "factory_agent", input=say, context=here, config={"configurable": here}
    )
    await refused("both at once", both, 400)
    return answers


async def a_run_goes_elsewhere(client: LangGraphClient) -> dict:
    thread_id, _ = await asked(client)
    await client.runs.wait(thread_id, "agent", command={"resume": "yes"})
    command = {"update": {"value": "commanded", "items": ["by command"]}, "goto": "run_subgraph"}
    values = await client.runs.wait(thread_id, "agent", command=command)
    same("the value", values["value"], "commanded")
    done = ["streamed", "tool", "asked", "sub"]
    same("items", values["items"], [*done, "by command", "sub"])
    return values


async def parts_in_one_shape(client: LangGraphClient) -> list[str]:
    thread_id = (await client.threads.create())["thread_id"]
    parts = client.runs.stream(
        thread_id, "agent", input=INPUT, stream_mode=["values", "updates"], version="v2"
    )
    types = [part["type"] async for part in parts]
    same("the kinds of parts", set(types), {"metadata", "values", "updates"})
    return types
