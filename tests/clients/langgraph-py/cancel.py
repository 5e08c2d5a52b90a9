"""Runs that are cancelled while something is at work: soon, and without harm to their thread."""

import time

from langgraph_sdk.client import LangGraphClient

from checks import is_there, same, texts, true

#: A hang, not a measurement: what is cut would go on for seconds or without an end. On a quiet
#: machine it takes a few milliseconds. The model of the tests pauses for longer.
SOON_MS = 3_000

#: The model stops behind its first word when it is asked so.
SLOWLY = "take your time"


async def cut_off(
    client: LangGraphClient, thread_id: str, graph: str, sign: str, say: dict
) -> float:
    """Milliseconds from the cancel of a run, sent at the first event of a kind, to its end."""
    told, sent = [], None
    stream = client.runs.stream(
        thread_id, graph, input=say, stream_mode=[sign], on_run_created=told.append
    )
    async for part in stream:
        if sent is None and part.event.startswith(sign.removesuffix("-tuple")):
            sent = time.perf_counter()
            await client.runs.cancel(thread_id, told[0]["run_id"])
    true("it was at work", sent is not None)
    took_ms = (time.perf_counter() - sent) * 1000
    true(f"it ended soon, not after {took_ms:.0f} ms", took_ms < SOON_MS)
    run = await client.runs.get(thread_id, told[0]["run_id"])
    same("its status", run["status"], "interrupted")
    thread = await client.threads.get(thread_id)
    same("the thread", thread["status"], "interrupted")
    same("why", thread["error"]["error"], "UserInterrupt")
    return took_ms


async def a_busy_loop_is_cut(client: LangGraphClient) -> dict:
    thread_id = (await client.threads.create())["thread_id"]
    took_ms = await cut_off(client, thread_id, "spinning_agent", "custom", {})
    # The thread is used again as far as the loop.
    stopped = {"input": {"items": ["again"]}, "interrupt_before": ["spin"]}
    values = await client.runs.wait(thread_id, "spinning_agent", **stopped)
    same("items", values["items"], ["again"])
    return {"cancel_ms": round(took_ms, 1)}


async def a_call_of_a_model_is_cut(client: LangGraphClient) -> dict | str:
    if not await is_there(client, "talking_agent"):
        return "left out: there is no `talking_agent`"
    thread_id = (await client.threads.create())["thread_id"]
    say = {"messages": [{"role": "user", "content": SLOWLY}]}
    took_ms = await cut_off(client, thread_id, "talking_agent", "messages-tuple", say)
    more = {"messages": [{"role": "user", "content": "and now?"}]}
    values = await client.runs.wait(thread_id, "talking_agent", input=more)
    said = texts(values)
    same("what people said", [text for kind, text in said if kind == "human"], [SLOWLY, "and now?"])
    true("the model answered", said[-1][0] == "ai" and said[-1][1])
    return {"cancel_ms": round(took_ms, 1)}
