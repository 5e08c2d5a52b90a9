"""Streams that are joined late, or again."""

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from checks import INPUT, same, true

MODES = ["values", "updates", "custom"]

#: Stands for an event before the first.
FROM_THE_BEGINNING = "-1"


def shown(parts: list[StreamPart]) -> list[tuple]:
    return [(part.id, part.event, part.data) for part in parts]


async def a_finished_run_is_replayed(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    told = []
    stream = client.runs.stream(
        thread_id,
        "agent",
        input=INPUT,
        stream_mode=MODES,
        stream_resumable=True,
        on_run_created=told.append,
    )
    live = [part async for part in stream]
    run_id = told[0]["run_id"]

    async def joined(last_event_id: str | None) -> list[StreamPart]:
        stream = client.runs.join_stream(
            thread_id, run_id, stream_mode=MODES, last_event_id=last_event_id
        )
        return [part async for part in stream]

    same("a replay", shown(await joined(FROM_THE_BEGINNING)), shown(live))
    for index in (0, len(live) // 2, len(live) - 1):
        rest = await joined(live[index].id)
        same(f"what came after event {index}", shown(rest), shown(live[index + 1 :]))
    same("without the id of an event", shown(await joined(None)), [])
    return {"events": len(live)}


async def a_run_at_work_is_followed(client: LangGraphClient) -> list[str]:
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "stalling_agent", input={}, stream_resumable=True)
    stream = client.runs.join_stream(
        thread_id, run["run_id"], stream_mode=MODES, last_event_id=FROM_THE_BEGINNING
    )
    seen = []
    async for part in stream:
        seen.append(part.event)
        if part.event == "custom":
            # It is at work now, and would be for an hour.
            same("its step", part.data["step"], "stall")
            await client.runs.cancel(thread_id, run["run_id"])
    true("the step was seen", "custom" in seen)
    ended = await client.runs.get(thread_id, run["run_id"])
    same("its status", ended["status"], "interrupted")
    return seen
