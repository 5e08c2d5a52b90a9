"""A second run on a thread that is at work. That it can be refused is in `runs`."""

from langgraph_sdk.client import LangGraphClient

from checks import begun, is_at_work, refused, same


async def both(client: LangGraphClient, strategy: str) -> tuple[str, str, str]:
    """A thread with a run at work and a second one, and their ids."""
    thread_id, first = await begun(client)
    second = await client.runs.create(
        thread_id, "stalling_agent", input={}, multitask_strategy=strategy
    )
    same("its strategy", second["multitask_strategy"], strategy)
    return thread_id, first, second["run_id"]


async def status(client: LangGraphClient, thread_id: str, run_id: str) -> str:
    return (await client.runs.get(thread_id, run_id))["status"]


async def end(client: LangGraphClient, thread_id: str, run_id: str) -> None:
    await client.runs.cancel(thread_id, run_id, wait=True)
    same("the thread", (await client.threads.get(thread_id))["status"], "interrupted")


async def it_waits_for_its_turn(client: LangGraphClient) -> list[str]:
    thread_id, first, second = await both(client, "enqueue")
    third = (await client.runs.create(thread_id, "stalling_agent", input={}))["run_id"]
    waiting = await client.runs.list(thread_id, status="pending")
    same("waiting runs", {run["run_id"] for run in waiting}, {second, third})
    await client.runs.cancel(thread_id, first)
    await is_at_work(client, thread_id, second)
    same("the third", await status(client, thread_id, third), "pending")
    same("the first", await status(client, thread_id, first), "interrupted")
    await client.runs.cancel(thread_id, third)
    same("the third, taken back", await status(client, thread_id, third), "interrupted")
    await end(client, thread_id, second)
    return [first, second, third]


async def it_interrupts(client: LangGraphClient) -> list[str]:
    thread_id, first, second = await both(client, "interrupt")
    await is_at_work(client, thread_id, second)
    same("the first", await status(client, thread_id, first), "interrupted")
    await end(client, thread_id, second)
    runs = await client.runs.list(thread_id)
    same("both are there", {run["run_id"] for run in runs}, {first, second})
    return [first, second]


async def it_rolls_back(client: LangGraphClient) -> list[str]:
    thread_id, first, second = await both(client, "rollback")
    await is_at_work(client, thread_id, second)
    await refused("the first", client.runs.get(thread_id, first), 404)
    history = await client.threads.get_history(thread_id, limit=100)
    traces = [state for state in history if state["metadata"].get("run_id") == first]
    same("what is left of it", traces, [])
    await end(client, thread_id, second)
    return [first, second]
