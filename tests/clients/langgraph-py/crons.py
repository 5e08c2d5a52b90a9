"""Runs that begin by the clock. None does here: the clock is stopped."""

import uuid
from datetime import UTC, datetime
from inspect import signature

from langgraph_sdk.client import LangGraphClient

from checks import INPUT, is_uuid, needs, refused, same, true

#: Every night, which no test sees.
NIGHTLY = "15 3 * * *"

#: Far away, so that nothing has ended.
END = datetime(2100, 1, 1, tzinfo=UTC)


async def a_cron_from_beginning_to_end(client: LangGraphClient) -> dict:
    crons, mark = client.crons, str(uuid.uuid4())
    made = await crons.create(
        "agent",
        schedule=NIGHTLY,
        input=INPUT,
        metadata={"mark": mark},
        timezone="Asia/Shanghai",
        end_time=END,
        on_run_completed="keep",
    )
    cron_id = made["cron_id"]
    true("the id is a UUID", is_uuid(cron_id))
    same("its schedule", (made["schedule"], made["timezone"]), (NIGHTLY, "Asia/Shanghai"))
    same("its thread", made["thread_id"], None)
    same("it is on", made["enabled"], True)
    true("when it is due", "T19:15:00" in made["next_run_date"])
    true("its end", made["end_time"].startswith("2100-01-01T00:00:00"))
    same("its input", made["payload"]["input"], INPUT)

    [found] = await crons.search(metadata={"mark": mark})
    same("the one that is found", found["cron_id"], cron_id)
    same("how many there are", await crons.count(metadata={"mark": mark}), 1)

    changed = await crons.update(cron_id, schedule="30 4 * * *", enabled=False)
    same("the new schedule", changed["schedule"], "30 4 * * *")
    for field in ("timezone", "end_time"):
        same(f"{field}, which did not change", changed[field], made[field])
    same("it is off", changed["enabled"], False)
    same("those that are on", await crons.search(metadata={"mark": mark}, enabled=True), [])

    await crons.delete(cron_id)
    same("after it", await crons.count(metadata={"mark": mark}), 0)
    await refused("a deleted cron", crons.delete(cron_id), 404)
    return changed


async def an_end_is_taken_back(client: LangGraphClient) -> dict:
    crons = client.crons
    default = signature(crons.update).parameters["end_time"].default
    needs("a cron whose end is taken back", default is not None)
    made = await crons.create("agent", schedule=NIGHTLY, input=INPUT, end_time=END)
    changed = await crons.update(made["cron_id"], end_time=None)
    same("its end", changed["end_time"], None)
    await crons.delete(made["cron_id"])
    return changed


async def a_cron_of_a_thread(client: LangGraphClient) -> list[str]:
    thread_id = (await client.threads.create())["thread_id"]
    crons = client.crons
    first = await crons.create_for_thread(thread_id, "agent", schedule=NIGHTLY, input=INPUT)
    same("its thread", first["thread_id"], thread_id)
    second = await crons.create_for_thread(thread_id, "agent", schedule="0 5 * * 1", input=INPUT)
    ids = [first["cron_id"], second["cron_id"]]
    same("those of the thread", await crons.count(thread_id=thread_id), 2)
    newest = await crons.search(thread_id=thread_id, sort_by="created_at", sort_order="desc")
    same("found", {cron["cron_id"] for cron in newest}, set(ids))
    page = await crons.search(thread_id=thread_id, limit=1, offset=1)
    same("on a page", len(page), 1)
    [only] = await crons.search(thread_id=thread_id, limit=1, select=["cron_id", "schedule"])
    same("what is selected", set(only), {"cron_id", "schedule"})
    for cron_id in ids:
        await crons.delete(cron_id)
    wrong = crons.create("agent", schedule="every day", input=INPUT)
    nobody = crons.create("no_such_agent", schedule=NIGHTLY, input=INPUT)
    return [
        await refused("a schedule that is none", wrong, 422),
        await refused("an unknown assistant", nobody, 422),
    ]
