"""The official Python client of LangGraph on a server with the app `reference`.

usage: main.py <url of the server> [<scenario> ...]

Each scenario is a function that checks what it gets. The answer is one line of JSON on standard
output: what passed, with what it returned, and what failed, with the reason. The exit code is 1 if
anything failed. `WATTLE_API_KEY` is sent if it is set.
"""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Awaitable, Callable

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

import assistants
import human
import rejoin
import runs
import states
import streams
import threads

Scenario = Callable[[LangGraphClient], Awaitable[object]]

SCENARIOS: list[Scenario] = [
    assistants.every_graph_is_one,
    threads.a_thread_from_beginning_to_end,
    threads.what_is_wrong_is_refused,
    runs.a_run_is_waited_for,
    runs.a_run_without_a_thread,
    runs.runs_are_listed,
    runs.tools_answer,
    runs.an_agent_inside_of_an_agent,
    runs.a_broken_message_changes_nothing,
    runs.a_second_run_is_rejected,
    runs.a_run_is_cancelled,
    human.answers_of_every_kind,
    human.an_answer_by_id,
    human.a_breakpoint_is_passed,
    streams.every_mode,
    streams.a_graph_inside,
    streams.the_tokens_of_an_answer,
    rejoin.a_finished_run_is_replayed,
    rejoin.a_run_at_work_is_followed,
    states.a_thread_that_waits,
    states.history_is_a_chain,
    states.a_state_is_edited,
    states.a_run_from_the_past,
]

#: Nothing here takes a second; a stream that does not end must not look like a slow machine.
TIMEOUT_S = 30


def name_of(scenario: Scenario) -> str:
    return f"{scenario.__module__}.{scenario.__name__}"


def reason(error: BaseException) -> str:
    """The error, and the line of ours that met it."""
    here = os.path.dirname(os.path.abspath(__file__))
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)]
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"
    return f"{place}: {type(error).__name__}: {error}"


async def run(url: str, wanted: list[str]) -> dict[str, dict[str, object]]:
    passed, failed = {}, {}
    for scenario in SCENARIOS:
        name = name_of(scenario)
        if wanted and name not in wanted:
            continue
        try:
            async with get_client(url=url, api_key=os.environ.get("WATTLE_API_KEY")) as client:
                passed[name] = await asyncio.wait_for(scenario(client), TIMEOUT_S)
        except Exception as error:  # One scenario must not keep the others from running.
            failed[name] = reason(error)
    return {"passed": passed, "failed": failed}


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    url, wanted = sys.argv[1], sys.argv[2:]
    unknown = set(wanted) - {name_of(scenario) for scenario in SCENARIOS}
    if unknown:
        sys.exit(f"there is no scenario {', '.join(sorted(unknown))}")
    answer = asyncio.run(run(url, wanted))
    print(json.dumps(answer))
    sys.exit(1 if answer["failed"] else 0)


main()
