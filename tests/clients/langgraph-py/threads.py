"""Threads: made, found, changed, deleted."""

import uuid

from langgraph_sdk.client import LangGraphClient

from checks import asked, is_uuid, refused, same, true


async def a_thread_from_beginning_to_end(client: LangGraphClient) -> dict:
    threads, mark = client.threads, str(uuid.uuid4())
    made = await threads.create(metadata={"mark": mark, "kind": "first"})
    thread_id = made["thread_id"]
    true("the id is a UUID", is_uuid(thread_id))
    same("the status", made["status"], "idle")
    same("the metadata", made["metadata"], {"mark": mark, "kind": "first"})
    read = await threads.get(thread_id)
    same("when it was made", read["created_at"], made["created_at"])

    await threads.update(thread_id, metadata={"kind": "second", "more": 1})
    changed = (await threads.get(thread_id))["metadata"]
    same("changed metadata", changed, {"mark": mark, "kind": "second", "more": 1})

    other = (await threads.create(metadata={"mark": mark}))["thread_id"]
    found = await threads.search(metadata={"mark": mark})
    same("found", {thread["thread_id"] for thread in found}, {thread_id, other})
    found = await threads.search(metadata={"mark": mark, "more": 1})
    same("found by two words", [thread["thread_id"] for thread in found], [thread_id])
    page = await threads.search(metadata={"mark": mark}, limit=1, offset=1)
    same("on a page", len(page), 1)
    same("busy ones", await threads.search(metadata={"mark": mark}, status="busy"), [])

    await threads.delete(thread_id)
    await refused("a deleted thread", threads.get(thread_id), 404)
    found = await threads.search(metadata={"mark": mark})
    same("found after it", [thread["thread_id"] for thread in found], [other])
    await threads.delete(other)
    return {"thread_id": thread_id}


async def what_is_wrong_is_refused(client: LangGraphClient) -> list[str]:
    threads, own = client.threads, str(uuid.uuid4())
    same("an id of one's own", (await threads.create(thread_id=own))["thread_id"], own)
    again = await threads.create(thread_id=own, if_exists="do_nothing")
    same("a thread that is there", again["thread_id"], own)
    said = [
        await refused("a second thread", threads.create(thread_id=own), 409),
        await refused("no UUID", threads.get("no-such-thread"), 422),
        await refused("an unknown thread", threads.get(str(uuid.uuid4())), 404),
        await refused("an unknown state", threads.get_state(str(uuid.uuid4())), 404),
        await refused("an unknown deletion", threads.delete(str(uuid.uuid4())), 404),
    ]
    await threads.delete(own)
    return said


async def threads_are_counted_and_pruned(client: LangGraphClient) -> int:
    threads, mark = client.threads, str(uuid.uuid4())
    ids = [(await threads.create(metadata={"mark": mark}))["thread_id"] for _ in range(3)]
    same("how many", await threads.count(metadata={"mark": mark}), 3)
    same("how many are idle", await threads.count(metadata={"mark": mark}, status="idle"), 3)
    same("how many are busy", await threads.count(metadata={"mark": mark}, status="busy"), 0)
    same("pruned", (await threads.prune(ids[:2]))["pruned_count"], 2)
    left = await threads.search(metadata={"mark": mark})
    same("left", [thread["thread_id"] for thread in left], ids[2:])
    return await threads.count(metadata={"mark": mark})


async def a_copy_goes_its_own_way(client: LangGraphClient) -> dict:
    thread_id, values = await asked(client)
    copy_id = (await client.threads.copy(thread_id))["thread_id"]
    true("it is another thread", copy_id != thread_id)
    state = await client.threads.get_state(copy_id)
    same("its items", state["values"]["items"], values["items"])
    ended = await client.runs.wait(copy_id, "agent", command={"resume": "yes"})
    same("its items at the end", ended["items"], ["streamed", "tool", "asked", "sub"])
    origin = await client.threads.get_state(thread_id)
    same("the origin still waits", origin["next"], ["ask_human"])
    return ended


async def threads_are_found_by_what_they_hold(client: LangGraphClient) -> list[dict]:
    threads, mark = client.threads, str(uuid.uuid4())
    ids = []
    for text in ("first", "second"):
        made = await threads.create(metadata={"mark": mark}, graph_id="factory_agent")
        same("the graph that is named", made["metadata"]["graph_id"], "factory_agent")
        ids.append(made["thread_id"])
        await client.runs.wait(ids[-1], "factory_agent", input={"text": text})
    by_values = await threads.search(
        metadata={"mark": mark}, values={"text": "second echoed"}, status="idle"
    )
    same("by values", [thread["thread_id"] for thread in by_values], ids[1:])
    same("how many", await threads.count(metadata={"mark": mark}, values={"text": "none"}), 0)
    by_id = await threads.search(ids=ids[:1])
    same("by id", [thread["thread_id"] for thread in by_id], ids[:1])
    oldest = await threads.search(
        metadata={"mark": mark}, sort_by="created_at", sort_order="asc", select=["thread_id"]
    )
    same("oldest first, selected", oldest, [{"thread_id": one} for one in ids])
    [taken] = await threads.search(ids=ids[:1], extract={"said": "values.text"})
    same("what is taken out", taken["extracted"], {"said": "first echoed"})
    return oldest


async def a_thread_has_an_end(client: LangGraphClient) -> dict:
    threads = client.threads
    thread_id = (await threads.create(ttl=60))["thread_id"]
    thread = await threads.get(thread_id, include=["ttl"])
    true("when it ends", thread["ttl"])
    nothing = await threads.update(thread_id, metadata={"a": 1}, ttl=120, return_minimal=True)
    same("an answer that nobody wants", nothing, None)
    same("it is changed all the same", (await threads.get(thread_id))["metadata"], {"a": 1})
    return thread


async def a_thread_begins_with_a_past(client: LangGraphClient) -> dict:
    step = {"values": {"value": "from before", "items": ["old"]}, "as_node": "stream_message"}
    thread_id = (
        await client.threads.create(graph_id="agent", supersteps=[{"updates": [step]}])
    )["thread_id"]
    state = await client.threads.get_state(thread_id)
    same("its items", state["values"]["items"], ["old"])
    same("what comes next", state["next"], ["call_tool"])
    return state
