"""What all scenarios use: comparing, leaving out what a client lacks, and a thread of the graph
`agent` that waits for an answer."""

import uuid
from collections.abc import Awaitable
from typing import Any

import httpx
from langgraph_sdk.client import LangGraphClient

#: The input of `agent`.
INPUT = {"messages": [], "value": "init", "items": []}

#: What `agent` asks.
QUESTION = "Are we good?"

#: Transports of typed events.
TRANSPORTS = ("sse", "websocket")


class Lacks(Exception):
    """The client does not have the feature that a scenario is about. Older clients lack some."""


def needs(feature: str, has: bool) -> None:
    """Leaves the scenario out if the client does not have a feature."""
    if not has:
        raise Lacks(feature)


def same(what: str, actual: object, expected: object) -> None:
    if actual != expected:
        raise AssertionError(f"{what} is {actual!r} and should be {expected!r}")


def true(what: str, actual: object) -> None:
    if not actual:
        raise AssertionError(f"{what} does not hold: {actual!r}")


async def refused(what: str, request: Awaitable[object], status: int) -> str:
    """The message of a request that must be refused. Not every method raises an error of the
    client's own; all of them are this one."""
    try:
        answer = await request
    except httpx.HTTPStatusError as error:
        same(f"status of {what}", error.response.status_code, status)
        detail = error.response.json()["detail"]
        true(f"a sentence about {what}", isinstance(detail, str) and detail)
        return detail
    raise AssertionError(f"{what} was not refused: {answer!r}")


def is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def typed_stream(client: LangGraphClient, assistant_id: str, **options: Any) -> Any:
    """The typed events of a thread."""
    needs("typed events of a thread", hasattr(client.threads, "stream"))
    return client.threads.stream(assistant_id=assistant_id, **options)


async def asked(client: LangGraphClient) -> tuple[str, dict[str, Any]]:
    """A thread whose run waits for an answer, and the values of then."""
    thread_id = (await client.threads.create())["thread_id"]
    return thread_id, await client.runs.wait(thread_id, "agent", input=INPUT)


def texts(values: dict[str, Any]) -> list[tuple[str, Any]]:
    """Types and contents of the messages."""
    return [(message["type"], message["content"]) for message in values["messages"]]


async def is_there(client: LangGraphClient, graph: str) -> bool:
    """Whether the server has a graph."""
    return bool(await client.assistants.search(graph_id=graph))


async def begun(client: LangGraphClient) -> tuple[str, str]:
    """A thread with a run that is at work until it is cancelled, and the run."""
    thread_id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread_id, "stalling_agent", input={}, stream_resumable=True)
    await is_at_work(client, thread_id, run["run_id"])
    return thread_id, run["run_id"]


async def is_at_work(client: LangGraphClient, thread_id: str, run_id: str) -> None:
    """Waits until a run of `stalling_agent` is at work."""
    stream = client.runs.join_stream(
        thread_id, run_id, stream_mode="custom", last_event_id="-1"
    )
    async for part in stream:
        if part.event == "custom":
            await stream.aclose()
            return
    raise AssertionError(f"the run {run_id} ended without a step")
