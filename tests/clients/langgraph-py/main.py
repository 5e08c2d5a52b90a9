"""The official Python client of LangGraph on a server with the app `reference`.

usage: main.py [--times <n>] <url of the server> [<scenario> ...]

Each scenario is a function that checks what it gets. The answer is one line of JSON on standard
output: what passed, with what it returned; what was left out, with the feature that the client
lacks; and what failed, with the reason. The exit code is 1 if anything failed. `WATTLE_API_KEY` is
sent if it is set.
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
import cancel
import crons
import cut
import human
import multitask
import rejoin
import remote
import runs
import short
import states
import store
import streams
import threads
import typed
from checks import Lacks

Scenario = Callable[[LangGraphClient], Awaitable[object]]

SCENARIOS: list[Scenario] = [
    assistants.every_graph_is_one,
    assistants.an_assistant_from_beginning_to_end,
    assistants.assistants_are_found,
    assistants.a_graph_is_described,
    threads.a_thread_from_beginning_to_end,
    threads.what_is_wrong_is_refused,
    threads.threads_are_counted_and_pruned,
    threads.a_copy_goes_its_own_way,
    threads.threads_are_found_by_what_they_hold,
    threads.a_thread_has_an_end,
    threads.a_thread_begins_with_a_past,
    runs.a_run_is_waited_for,
    runs.a_run_without_a_thread,
    runs.runs_are_listed,
    runs.tools_answer,
    runs.an_agent_inside_of_an_agent,
    runs.a_broken_message_changes_nothing,
    runs.a_second_run_is_rejected,
    runs.a_run_is_cancelled,
    runs.several_at_once,
    runs.several_are_cancelled,
    runs.a_failure_is_an_error_of_the_client,
    runs.a_run_that_comes_later,
    runs.what_a_run_is_told,
    runs.a_run_goes_elsewhere,
    runs.parts_in_one_shape,
    multitask.it_waits_for_its_turn,
    multitask.it_interrupts,
    multitask.it_rolls_back,
    cancel.a_busy_loop_is_cut,
    human.answers_of_every_kind,
    human.an_answer_by_id,
    human.an_answer_counts_once,
    human.a_strict_answer_is_refused_later,
    human.a_breakpoint_is_passed,
    streams.every_mode,
    streams.a_graph_inside,
    streams.the_tokens_of_an_answer,
    rejoin.a_finished_run_is_replayed,
    rejoin.a_run_at_work_is_followed,
    states.a_thread_that_waits,
    states.fields_are_selected,
    states.history_is_a_chain,
    states.a_state_is_edited,
    states.a_run_from_the_past,
    store.items_are_kept_and_found,
    store.namespaces_are_listed,
    crons.a_cron_from_beginning_to_end,
    crons.an_end_is_taken_back,
    crons.a_cron_of_a_thread,
    remote.a_graph_is_run_and_answered,
    remote.a_graph_is_drawn_and_edited,
    remote.a_run_of_a_program_without_asyncio,
    remote.a_failure_is_an_exception,
    remote.a_node_of_a_local_graph,
    remote.an_interrupt_below_a_local_graph,
    remote.typed_events,
    short.a_run_that_pauses,
    short.a_run_that_ends,
    short.a_run_behind_another,
    typed.an_answer,
    typed.messages_in_pieces,
    typed.tools_and_custom_events,
    typed.all_runs_of_a_thread,
]

#: What waits for seconds runs side by side, behind the others.
SLOW_SCENARIOS: list[Scenario] = [
    cancel.a_call_of_a_model_is_cut,
    cut.a_stream_goes_on_behind_a_cut,
    cut.a_graph_inside_goes_on_behind_a_cut,
    cut.a_run_at_work_is_found_again,
    cut.a_long_wait_is_not_silent,
    cut.a_wait_is_taken_up_behind_a_cut,
]

#: Nothing here takes longer but waiting on purpose; a stream that does not end must not look like a
#: slow machine.
TIMEOUT_S = 30


def name_of(scenario: Scenario) -> str:
    return f"{scenario.__module__}.{scenario.__name__}"


def reason(error: BaseException) -> str:
    """The error, and the line of ours that met it."""
    here = os.path.dirname(os.path.abspath(__file__))
    ours = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(here)]
    place = f"{os.path.basename(ours[-1].filename)}:{ours[-1].lineno}" if ours else "?"
    return f"{place}: {type(error).__name__}: {error}"


async def repeated(scenario: Scenario, client: LangGraphClient, times: int) -> object:
    """What the last of so many returned. The first that fails ends it."""
    for number in range(1, times):
        try:
            await asyncio.wait_for(scenario(client), TIMEOUT_S)
        except Lacks:
            raise
        except Exception as error:
            raise AssertionError(f"{number} of {times}: {reason(error)}") from error
    return await asyncio.wait_for(scenario(client), TIMEOUT_S)


async def run(url: str, wanted: list[str], times: int) -> dict[str, dict[str, object]]:
    passed, left_out, failed = {}, {}, {}

    async def run_one(scenario: Scenario) -> None:
        name = name_of(scenario)
        if wanted and name not in wanted:
            return
        try:
            async with get_client(url=url, api_key=os.environ.get("WATTLE_API_KEY")) as client:
                passed[name] = await repeated(scenario, client, times)
        except Lacks as lack:
            left_out[name] = str(lack)
        except Exception as error:  # One scenario must not keep the others from running.
            failed[name] = reason(error)

    for scenario in SCENARIOS:
        await run_one(scenario)
    await asyncio.gather(*(run_one(scenario) for scenario in SLOW_SCENARIOS))
    return {"passed": passed, "left_out": left_out, "failed": failed}


def main() -> None:
    arguments = sys.argv[1:]
    times = 1
    if arguments[:1] == ["--times"] and len(arguments) > 1 and arguments[1].isdecimal():
        times, arguments = int(arguments[1]), arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    url, *wanted = arguments
    unknown = set(wanted) - {name_of(scenario) for scenario in SCENARIOS + SLOW_SCENARIOS}
    if unknown:
        sys.exit(f"there is no scenario {', '.join(sorted(unknown))}")
    answer = asyncio.run(run(url, wanted, times))
    print(json.dumps(answer))
    sys.exit(1 if answer["failed"] else 0)


main()
