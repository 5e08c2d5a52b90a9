"""Connections that are cut: nothing is lost, and nothing comes twice."""

import asyncio
import os
import warnings

import h11
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamPart

from checks import INPUT, Lacks, asked, begun, needs, same, true
from proxy import Proxy

MODES = ["values", "updates", "messages-tuple", "custom"]

#: How long a run is waited for, and when a proxy on the way cuts what is silent. The server lets a
#: waiting client hear of it every five seconds.
WAIT_S, IDLE_S = 10.0, 8.0

#: A proxy that is less patient than the server.
IMPATIENT_S = 1.0


def url_of(client: LangGraphClient) -> str:
    return str(client.http.client.base_url)


def through(proxy: Proxy) -> LangGraphClient:
    return get_client(url=proxy.url, api_key=os.environ.get("WATTLE_API_KEY"))


def shown(parts: list[StreamPart]) -> list[tuple]:
    return [(part.id, part.event, part.data) for part in parts]


async def streamed_through_cuts(
    client: LangGraphClient, thread_id: str, **request: object
) -> list[tuple]:
    """What a client gets of a run whose stream is cut twice."""
    told = []
    async with Proxy(url_of(client), after=3, times=2) as proxy:
        async with through(proxy) as other:
            stream = other.runs.stream(
                thread_id,
                "agent",
                stream_mode=MODES,
                stream_resumable=True,
                on_run_created=told.append,
                **request,
            )
            parts = [part async for part in stream]
        same("cuts", proxy.cuts, 2)
    whole = client.runs.join_stream(thread_id, told[0]["run_id"], last_event_id="-1")
    same("what came", shown(parts), shown([part async for part in whole]))
    ids = [part.id for part in parts]
    same("ids are all different", len(set(ids)), len(ids))
    return [part.event for part in parts]


async def a_stream_goes_on_behind_a_cut(client: LangGraphClient) -> list[str]:
    thread_id = (await client.threads.create())["thread_id"]
    return await streamed_through_cuts(client, thread_id, input=INPUT)


async def a_graph_inside_goes_on_behind_a_cut(client: LangGraphClient) -> list[str]:
    thread_id, _ = await asked(client)
    command = {"resume": "yes"}
    events = await streamed_through_cuts(
        client, thread_id, command=command, stream_subgraphs=True
    )
    true("the graph inside is there", any("|run_subgraph:" in event for event in events))
    return events


async def a_run_at_work_is_found_again(client: LangGraphClient) -> list[str]:
    """The stream ends in order, but the run has not: the client asks for the run, and comes back.
    Of a run that is over it would believe that this was all."""
    thread_id, run_id = await begun(client)
    async with Proxy(url_of(client), after=2, times=1, gently=True) as proxy:

        async def cancel_when_it_is_back() -> None:
            await proxy.streams(2)
            await client.runs.cancel(thread_id, run_id)

        cancelling = asyncio.create_task(cancel_when_it_is_back())
        async with through(proxy) as other:
            stream = other.runs.join_stream(
                thread_id, run_id, stream_mode=MODES, last_event_id="-1"
            )
            parts = [part async for part in stream]
        if proxy.opened == 1:
            cancelling.cancel()
            await client.runs.cancel(thread_id, run_id)
        needs("a look at the run when its stream ends in order", proxy.opened > 1)
        await cancelling
        same("cuts", proxy.cuts, 1)
    whole = client.runs.join_stream(thread_id, run_id, stream_mode=MODES, last_event_id="-1")
    same("what came", shown(parts), shown([part async for part in whole]))
    run = await client.runs.get(thread_id, run_id)
    same("its status", run["status"], "interrupted")
    return [part.event for part in parts]


async def waited_behind(client: LangGraphClient, proxy: Proxy, over) -> dict:
    """Waits for a run behind a proxy; it is cancelled when `over` ends."""
    thread_id = (await client.threads.create())["thread_id"]
    told = asyncio.get_running_loop().create_future()
    async with through(proxy) as other:
        waiting = asyncio.create_task(
            other.runs.wait(
                thread_id, "stalling_agent", input={}, on_run_created=told.set_result
            )
        )
        run_id = (await told)["run_id"]
        await over
        await client.runs.cancel(thread_id, run_id)
        values = await waiting
    run = await client.runs.get(thread_id, run_id)
    same("its status", run["status"], "interrupted")
    return values


async def a_long_wait_is_not_silent(client: LangGraphClient) -> dict:
    async with Proxy(url_of(client), idle_s=IDLE_S) as proxy:
        values = await waited_behind(client, proxy, asyncio.sleep(WAIT_S))
        same("cuts", proxy.cuts, 0)
    return values


async def a_wait_is_taken_up_behind_a_cut(client: LangGraphClient) -> dict:
    """An older client repeats the length of its first request without the body, and the library
    below it refuses to send that."""
    with warnings.catch_warnings():
        # The client says that it comes back, which is what is wanted here.
        warnings.simplefilter("ignore")
        async with Proxy(url_of(client), idle_s=IMPATIENT_S) as proxy:
            try:
                values = await waited_behind(client, proxy, proxy.cut(1))
            except h11.LocalProtocolError as error:
                raise Lacks("a wait that is taken up behind a cut") from error
            true("it was cut", proxy.cuts >= 1)
    return values
