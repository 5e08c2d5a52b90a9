"""Calls of `runs`."""

from __future__ import annotations

from typing import Any

from wit_world.imports import runs as raw

from wattle import _json
from wattle._wire._convert import call, extra, failure, kind, raw_extra, text, value, variant
from wattle.runs import (
    REJECT_IF_INTERRUPTED,
    EndedRun,
    Interrupt,
    Outcome,
    Resume,
    RunRef,
    Start,
    Thread,
    ThreadPage,
    ThreadSearch,
    ThreadSummary,
)


def start(request: Start) -> RunRef:
    """Starts a run."""
    fields = request.extra
    if request.reject_if_interrupted:
        fields = {**fields, REJECT_IF_INTERRUPTED: True}
    return _run(
        call(
            raw.start,
            raw.StartRequest(
                request.graph,
                _json.write("the input", request.input),
                request.thread_id,
                text("the run context", request.context),
                text("the metadata", request.metadata),
                raw_extra(fields),
            ),
        )
    )


def resume(request: Resume) -> RunRef:
    """Answers interrupts."""
    answers = [(id, _json.write("an answer", answer)) for id, answer in request.answers]
    on_failure = variant(raw, "OnFailure", request.on_failure)
    fields = raw_extra(request.extra)
    return _run(call(raw.resume, raw.ResumeRequest(request.thread_id, answers, on_failure, fields)))


def wait(run: RunRef) -> EndedRun:
    """Waits for the end of a run."""
    ended = call(raw.wait, raw.RunRef(run.thread_id, run.run_id))
    return EndedRun(_run(ended.run), _outcome(ended.outcome), value(ended.state))


def cancel(run: RunRef) -> None:
    """Cancels a run."""
    call(raw.cancel, raw.RunRef(run.thread_id, run.run_id))


def thread(thread_id: str) -> Thread | None:
    """Reads a thread."""
    info = call(raw.thread, thread_id)
    if info is None:
        return None
    return Thread(
        info.thread_id,
        info.graph,
        info.status,
        value(info.state),
        [_interrupt(it) for it in info.interrupts],
        info.run_id,
        info.created_ms,
        info.updated_ms,
        value(info.metadata),
        extra(info.extra),
    )


def delete_thread(thread_id: str) -> None:
    """Deletes a thread."""
    call(raw.delete_thread, thread_id)


def threads(search: ThreadSearch) -> ThreadPage:
    """Lists threads."""
    page = call(
        raw.threads,
        raw.ThreadSearch(
            search.graph,
            search.text,
            text("the metadata", search.metadata),
            search.after,
            search.limit,
            raw_extra(search.extra),
        ),
    )
    return ThreadPage([_summary(it) for it in page.threads], page.next)


def update_thread(thread_id: str, metadata: dict[str, Any]) -> None:
    """Adds metadata to a thread."""
    call(raw.update_thread, thread_id, _json.write("the metadata", metadata), [])


def events(thread_id: str, after: int, limit: int) -> list[Any]:
    """Reads events."""
    return [value(event) for event in call(raw.events, thread_id, after, limit)]


def _run(of: raw.RunRef) -> RunRef:
    return RunRef(of.thread_id, of.run_id)


def _summary(of: raw.ThreadSummary) -> ThreadSummary:
    return ThreadSummary(
        of.thread_id,
        of.graph,
        of.status,
        of.run_id,
        of.created_ms,
        of.updated_ms,
        value(of.metadata),
        extra(of.extra),
    )


def _interrupt(of: raw.InterruptInfo) -> Interrupt:
    schema = value(of.response_schema)
    return Interrupt(of.id, of.node, value(of.payload), schema, of.asked_ms, of.expires_ms)


def _outcome(of: Any) -> Outcome:
    match of:
        case raw.RunResult_Interrupted():
            return Outcome.interrupted(*(_interrupt(it) for it in of.value))
        case raw.RunResult_Failed():
            return Outcome.failed(failure(of.value))
        case _:
            return Outcome(kind(of))
