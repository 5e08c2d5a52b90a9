"""Threads: made, found, changed, deleted."""

import uuid

from langgraph_sdk.client import LangGraphClient

from checks import is_uuid, refused, same, true


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
