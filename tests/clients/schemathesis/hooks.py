"""What `schemathesis` needs to know of the server beyond its description.

Requests that are right are sent to what is there: their ids are replaced by those of `SCENE`, a JSON
object that the test sets, and runs are asked for in a way that lets them begin. Otherwise each would
find nothing. What would take the scene away is sent elsewhere. Waits are made short.
"""

import json
import os
import re
import zlib
from typing import Any

import schemathesis

SCENE: dict[str, str] = json.loads(os.environ["SCENE"])

# Threads to write on: one alone would become long, and each request to it slow.
THREADS = SCENE.pop("threads").split(",")

# What is on the thread that `SCENE` names.
ON_THREAD = {"run", "checkpoint"}

# Requests whose effect would be in the way of all others.
TAKES_AWAY = re.compile(r"/(cancel|drain|prune|settle)$")

# An id that nothing has.
NOBODY = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8"

# Seconds that a run may wait for its turn.
LONGEST_WAIT = 0.05

# One right request in so many is sent as it is.
STRANGERS = 4

# A query with a value that is empty: clients of an Agent Server send those for what they leave out.
LEFT_OUT = re.compile(r"[?&][^&=]*=(&|$)")

# What of a run must fit to what is there, and together.
PICKY = ["webhook", "checkpoint", "checkpoint_id", "interrupt_before", "interrupt_after", "context"]


# Components are bytes as they are.
schemathesis.serializer.alias("application/wasm", "application/octet-stream")


def is_right(case: schemathesis.Case) -> bool:
    """Whether the request is as the description wants it."""
    return case.meta is not None and case.meta.generation.mode.is_positive


def runs_of(body: Any) -> list[dict]:
    """The runs that a request may ask for."""
    return [run for run in (body if isinstance(body, list) else [body]) if isinstance(run, dict)]


def shorten(run: dict) -> None:
    """Makes the wait of a run short."""
    seconds = run.get("after_seconds")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
        run["after_seconds"] = min(seconds, LONGEST_WAIT)


def let_begin(run: dict, sort: int) -> None:
    """Lets a run begin: with an input or a command, on the assistant of the scene."""
    run["assistant_id"] = SCENE["assistant"]
    for field in PICKY:
        run.pop(field, None)
    if sort & 1:
        run.pop("command", None)
        run["input"] = {"messages": "hi"}
    else:
        run.pop("input", None)


def spare(case: schemathesis.Case) -> None:
    """Keeps a request away from the scene."""
    for name, value in (case.path_parameters or {}).items():
        if value in SCENE.values() or value in THREADS:
            case.path_parameters[name] = NOBODY
    if isinstance(case.body, dict):
        for field in ("thread_id", "thread_ids", "run_ids"):
            said = json.dumps(case.body.get(field))
            if any(thread in said for thread in [SCENE["thread"], *THREADS]):
                case.body.pop(field)


def places(case: schemathesis.Case, sort: int) -> dict[str, str]:
    """The values in the path, by parameter. An `{id}` is that of an assistant or of a thread."""
    thread = SCENE["thread"]
    if not ON_THREAD & set(case.path_parameters or {}):
        thread = THREADS[sort % len(THREADS)]
    own = SCENE["assistant"] if case.path.startswith("/assistants") else thread
    return {**SCENE, "thread": thread, "id": own}


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case, kwargs: dict) -> None:
    """Sends a request to what is there."""
    for run in runs_of(case.body):
        shorten(run)
    if case.method == "DELETE" or TAKES_AWAY.search(case.path):
        spare(case)
        return
    sort = zlib.crc32(repr((case.path_parameters, case.body, case.query)).encode())
    if not is_right(case) or sort % STRANGERS == 0:
        return
    known = places(case, sort >> 8)
    for name in case.path_parameters or {}:
        if name in known:
            case.path_parameters[name] = known[name]
    if "/runs" in case.path and not case.path.startswith("/api/"):
        for run in runs_of(case.body):
            if "assistant_id" in run:
                let_begin(run, sort >> 16)


@schemathesis.hook
def filter_failure(
    context: schemathesis.HookContext,
    failure: Exception,
    case: schemathesis.Case,
    response: schemathesis.Response,
) -> bool:
    """Whether a failure counts."""
    is_accepted = type(failure).__name__ == "AcceptedNegativeData"
    return not (is_accepted and LEFT_OUT.search(response.request.url or ""))
