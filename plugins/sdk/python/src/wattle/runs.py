"""Threads and runs of the plugin's own app: start, resume, cancel, read and list them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, cast, overload

from wattle import _host, _schema, log
from wattle import code as codes
from wattle._event import (
    Called,
    CallStarted,
    Custom,
    Delta,
    Event,
    EventKind,
    OtherEvent,
    RunEnded,
    RunStarted,
    Streamed,
    TaskFinished,
    Write,
)
from wattle._run_log import PAGE_EVENTS, RunLog, all_events, by_run, events
from wattle.failure import Failure, detail_of

__all__ = [
    "CallStarted",
    "Called",
    "Custom",
    "Delta",
    "EndedRun",
    "Event",
    "EventKind",
    "Interrupt",
    "OnFailure",
    "OtherEvent",
    "Outcome",
    "PAGE_EVENTS",
    "Resume",
    "ResumeOutcome",
    "RunEnded",
    "RunLog",
    "RunRef",
    "RunStarted",
    "Start",
    "Streamed",
    "TaskFinished",
    "Thread",
    "ThreadPage",
    "ThreadSearch",
    "ThreadSummary",
    "Write",
    "all_events",
    "by_run",
    "cancel",
    "cancel_and_wait",
    "delete_thread",
    "delete_thread_if_any",
    "events",
    "find",
    "resume",
    "start",
    "thread",
    "threads",
    "update_thread",
    "wait",
]

REJECT_IF_INTERRUPTED = "reject_if_interrupted"
"""Key of `extra` for `Start.reject_if_interrupted`."""

ATTEMPTS = 5
"""Maximum attempts of `Resume.resume_once`. Each one may wait for a run of another request, which
can fail and leave the thread to this request."""

T = TypeVar("T")


@dataclass(frozen=True)
class RunRef:
    """A reference to a run."""

    thread_id: str
    """Id of the thread."""
    run_id: str
    """Id of the run."""


@dataclass
class Start:
    """A request to start a run of a graph."""

    graph: str
    """Name of the graph."""
    input: dict[str, Any] = field(default_factory=dict)
    """Input: an object of channel values."""
    thread_id: str | None = None
    """Id of the thread; `None` creates a thread with a generated id."""
    context: Any = None
    """Run context, which every node receives as `Context.context`."""
    metadata: dict[str, Any] | None = None
    """Metadata of the thread."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""
    reject_if_interrupted: bool = False
    """Rejects the start if the thread is interrupted and has pending interrupts: the start fails
    with `conflict`, and `reason` of its details is `interrupted`. By default, the run gives the
    interrupts up. The host checks the thread while no other run can start."""

    def start(self) -> RunRef:
        """Starts the run. Returns without waiting for its end."""
        return start(self)

    def start_and_wait(self) -> EndedRun:
        """Starts the run and waits until it has ended or is interrupted."""
        return wait(self.start())


class OnFailure:
    """The effects of a failed run on its resumed thread."""

    KEEP = "keep"
    """The thread keeps its progress. A later run continues with the failed task."""
    REOPEN = "reopen"
    """The thread is reopened: the answered interrupts are pending again."""


@dataclass
class Resume:
    """Answers to pending interrupts of a thread."""

    thread_id: str
    """Id of the thread."""
    answers: list[tuple[str, Any]] = field(default_factory=list)
    """Answers by interrupt id. The empty id selects the only pending interrupt."""
    on_failure: str = OnFailure.KEEP
    """The effect of a failed run on the thread, see `OnFailure`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def answer(self, answer: Any) -> Self:
        """Answers the only pending interrupt."""
        return self.answer_to("", answer)

    def answer_to(self, interrupt: str, answer: Any) -> Self:
        """Answers one of several pending interrupts."""
        self.answers.append((interrupt, answer))
        return self

    def resume(self) -> RunRef:
        """Resumes the thread. Returns without waiting for the end of the run."""
        return resume(self)

    def resume_and_wait(self) -> EndedRun:
        """Resumes the thread and waits until the run has ended or is interrupted."""
        return wait(self.resume())

    def resume_once(self, graph: str, done: Callable[[Thread], T | None]) -> ResumeOutcome[T]:
        """Resumes an interrupted thread of a graph once for requests that arrive together.

        Such requests are those of a double click. Waits until the run has ended or is interrupted
        again.

        `done` returns the result of a thread that needs no answers, such as that of an earlier
        request, or `None`. If a run of another request is active, this request waits for its end
        and reads the thread again. Raises failures of `done` and of host calls. The failure of a
        failed run is in `ResumeOutcome.run`.

        >>> from wattle.testing import FakeHost
        >>> with FakeHost().thread(Thread("t", "review", "idle", {"stored": [11, 12]})) as host:
        ...     resume = Resume("t").answer({"ok": True})
        ...     once = resume.resume_once("review", lambda thread: thread.channel("stored"))
        >>> once.kind, once.result, host.resumed
        ('done', [11, 12], [])
        """
        for _ in range(ATTEMPTS):
            thread = find(graph, self.thread_id)
            if thread is None:
                return ResumeOutcome("not_interrupted")
            result = done(thread)
            if result is not None:
                return ResumeOutcome("done", result=result)
            active = thread.active_run()
            if active is not None:
                _await_other(active)
                continue
            if not thread.is_interrupted():
                return ResumeOutcome("not_interrupted")
            try:
                run = self.resume()
            except Failure as failure:
                if failure.code in (codes.NOT_FOUND, codes.EXPIRED):
                    return ResumeOutcome("not_interrupted")
                if failure.code == codes.INVALID:
                    return ResumeOutcome("refused", failure=failure)
                # After `conflict`, another request has answered the interrupt.
                if failure.code not in (codes.BUSY, codes.CONFLICT):
                    raise
                # Only the failure of a busy thread names a run.
                run_id = detail_of(failure, "run_id") if failure.code == codes.BUSY else None
                if isinstance(run_id, str):
                    _await_other(RunRef(self.thread_id, run_id))
            else:
                return ResumeOutcome("ended", run=wait(run))
        return ResumeOutcome("busy")


@dataclass
class ResumeOutcome(Generic[T]):
    """The outcome of `Resume.resume_once`."""

    kind: str
    """`done`: the thread was not resumed, because the app already had a result for it. `ended`: the
    resumed run has ended or is interrupted again. `refused`: an answer violates the schema of its
    interrupt, which remains pending. `not_interrupted`: the thread is not interrupted, does not
    exist or has expired. `busy`: other requests had active runs in all attempts."""
    result: T | None = None
    """The result of the app, for `done`."""
    run: EndedRun | None = None
    """The run, for `ended`."""
    failure: Failure | None = None
    """The failure of the resume, for `refused`."""


@dataclass
class Interrupt:
    """A pending interrupt."""

    id: str
    """Id of the interrupt."""
    node: str
    """Node that raised the interrupt."""
    payload: Any
    """Payload to show to the person."""
    response_schema: Any = None
    """JSON Schema for the answer."""
    asked_ms: int = 0
    """Time at which the interrupt was raised, in milliseconds since 1970."""
    expires_ms: int | None = None
    """Time at which the thread expires if the interrupt is still pending."""


@dataclass
class Outcome:
    """The outcome of a run that has ended or is interrupted."""

    kind: str
    """`completed`, `interrupted`, `failed`, `cancelled`, or one that this version does not know."""
    interrupts: list[Interrupt] = field(default_factory=list)
    """The pending interrupts of an interrupted run."""
    failure: Failure | None = None
    """The failure of a failed run."""

    @classmethod
    def completed(cls) -> Self:
        """Builds the outcome of a completed run, for tests."""
        return cls("completed")

    @classmethod
    def interrupted(cls, *interrupts: Interrupt) -> Self:
        """Builds the outcome of an interrupted run, for tests."""
        return cls("interrupted", list(interrupts))

    @classmethod
    def failed(cls, failure: Failure) -> Self:
        """Builds the outcome of a failed run, for tests."""
        return cls("failed", failure=failure)

    @classmethod
    def cancelled(cls) -> Self:
        """Builds the outcome of a cancelled run, for tests."""
        return cls("cancelled")

    def to_failure(self) -> Failure:
        """Returns the failure of a run that neither completed nor is interrupted."""
        if self.failure is not None:
            return self.failure
        if self.kind == "cancelled":
            return Failure(codes.CANCELLED, "the run was cancelled")
        return Failure.internal(f"the run has the unknown outcome `{self.kind}`")


@dataclass
class EndedRun:
    """A run that has ended or is interrupted."""

    run: RunRef
    """Reference to the run."""
    outcome: Outcome
    """Outcome of the run."""
    state: dict[str, Any] = field(default_factory=dict)
    """State of the thread, an object of channel values."""

    def completed(self) -> dict[str, Any]:
        """Returns the state of a completed run.

        Raises the failure of a failed run; `cancelled` if the run was cancelled; `conflict` if it
        is interrupted.
        """
        if self.outcome.kind == "completed":
            return self.state
        if self.outcome.kind == "interrupted":
            raise Failure.conflict("the run is interrupted")
        raise self.outcome.to_failure()

    def question(self) -> Interrupt:
        """Returns the first pending interrupt of an interrupted run.

        Raises the failure of a failed run; `cancelled` if the run was cancelled; `conflict` if no
        interrupt is pending.
        """
        if self.outcome.interrupts:
            return self.outcome.interrupts[0]
        if self.outcome.kind in ("completed", "interrupted"):
            raise Failure.conflict("the run has no pending interrupt")
        raise self.outcome.to_failure()

    @overload
    def channel(self, name: str, of: type[T]) -> T | None: ...

    @overload
    def channel(self, name: str, of: Any = None) -> Any: ...

    def channel(self, name: str, of: Any = None) -> Any:
        """Returns a channel of the state as a type, or `None` if it is missing or null."""
        return _channel(self.state, name, of)


@dataclass
class Thread:
    """A thread."""

    thread_id: str
    """Id of the thread."""
    graph: str
    """Name of the graph."""
    status: str
    """`idle`, `running`, `interrupted` or `error`."""
    state: dict[str, Any] = field(default_factory=dict)
    """State, an object of channel values."""
    interrupts: list[Interrupt] = field(default_factory=list)
    """Pending interrupts."""
    run_id: str | None = None
    """Id of the newest run."""
    created_ms: int = 0
    """Time of creation, in milliseconds since 1970."""
    updated_ms: int = 0
    """Time of the last change, in milliseconds since 1970."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Metadata of the thread."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def is_running(self) -> bool:
        """Returns true if a run of the thread is active."""
        return self.status == "running"

    def is_interrupted(self) -> bool:
        """Returns true if the thread has pending interrupts, or is at a breakpoint."""
        return self.status == "interrupted"

    def active_run(self) -> RunRef | None:
        """Returns the active run."""
        if self.run_id is None or not self.is_running():
            return None
        return RunRef(self.thread_id, self.run_id)

    @overload
    def channel(self, name: str, of: type[T]) -> T | None: ...

    @overload
    def channel(self, name: str, of: Any = None) -> Any: ...

    def channel(self, name: str, of: Any = None) -> Any:
        """Returns a channel of the state as a type, or `None` if it is missing or null."""
        return _channel(self.state, name, of)


@dataclass
class ThreadSearch:
    """A search for threads, newest update first. All conditions must hold."""

    graph: str | None = None
    """Only threads of this graph."""
    text: str | None = None
    """Only threads that contain this text in their id, newest run, app, graph, failure or in a text
    of their metadata. Letters match in either case. At most 512 bytes."""
    metadata: dict[str, Any] | None = None
    """Only threads whose metadata contains these fields. Nested objects may have additional
    fields."""
    after: str | None = None
    """The `ThreadPage.next` of the page before."""
    limit: int = 50
    """Maximum number of threads in the page, from 1 to 500."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def run(self) -> ThreadPage:
        """Runs the search.

        Raises `invalid` if the text is too long or if no page has the position, `unsupported` in a
        node.
        """
        return threads(self)


@dataclass
class ThreadSummary:
    """A thread in a list: a `Thread` without its state."""

    thread_id: str
    """Id of the thread."""
    graph: str
    """Name of the graph."""
    status: str
    """`idle`, `running`, `interrupted` or `error`."""
    run_id: str | None = None
    """Id of the newest run."""
    created_ms: int = 0
    """Time of creation, in milliseconds since 1970."""
    updated_ms: int = 0
    """Time of the last change, in milliseconds since 1970."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Metadata of the thread."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""


@dataclass
class ThreadPage:
    """A page of a list of threads."""

    threads: list[ThreadSummary]
    """The threads, newest update first. A page may be short or empty although another one
    follows."""
    next: str | None = None
    """Cursor after the page; `None` at the end of the list."""


def _channel(state: dict[str, Any], name: str, of: Any) -> Any:
    value = state.get(name)
    return None if value is None else _schema.decode(f"channel `{name}`", of, value)


def start(request: Start) -> RunRef:
    """Starts a run. Returns without waiting for its end.

    Raises `conflict` if the thread belongs to another graph or, with `Start.reject_if_interrupted`,
    has pending interrupts, `busy` if a run of the thread is active.

    >>> from wattle.testing import FakeHost
    >>> waiting = Thread("a", "notes", "interrupted", interrupts=[Interrupt("q", "review", {})])
    >>> with FakeHost().thread(waiting) as host:
    ...     try:
    ...         start(Start("notes", thread_id="a", reject_if_interrupted=True))
    ...     except Failure as failure:
    ...         print(failure.code, failure.details, host.started)
    conflict {'reason': 'interrupted'} []
    """
    return cast(RunRef, _host.interface("runs").start(request))


def resume(request: Resume) -> RunRef:
    """Answers pending interrupts and resumes the thread.

    Returns without waiting for the end of the run. Raises `not-found` if the thread does not exist
    or has expired, `conflict` if an interrupt is not pending, `invalid` if an answer violates its
    schema (the interrupt remains pending), `busy` if a run of the thread is active.
    """
    return cast(RunRef, _host.interface("runs").resume(request))


def wait(run: RunRef) -> EndedRun:
    """Waits until a run has ended or is interrupted."""
    return cast(EndedRun, _host.interface("runs").wait(run))


def cancel(run: RunRef) -> None:
    """Cancels a run."""
    _host.interface("runs").cancel(run)


def cancel_and_wait(run: RunRef) -> EndedRun:
    """Cancels a run and waits until it has ended."""
    cancel(run)
    return wait(run)


def thread(thread_id: str) -> Thread | None:
    """Returns a thread, or `None` if it does not exist or has expired."""
    return cast(Thread | None, _host.interface("runs").thread(thread_id))


def find(graph: str, thread_id: str) -> Thread | None:
    """Returns a thread of a graph, or `None` if the graph has no such thread.

    A text that cannot be the id of a thread is no failure, because the ids of requests come from
    clients.

    >>> from wattle.testing import FakeHost
    >>> with FakeHost().thread(Thread("t", "notes", "running", run_id="run-7")):
    ...     print(find("notes", "t").active_run(), find("orders", "t"))
    RunRef(thread_id='t', run_id='run-7') None
    """
    try:
        found = thread(thread_id)
    except Failure as failure:
        if failure.code in (codes.NOT_FOUND, codes.INVALID):
            return None
        raise
    return found if found is not None and found.graph == graph else None


def delete_thread(thread_id: str) -> None:
    """Deletes a thread and all its data."""
    _host.interface("runs").delete_thread(thread_id)


def delete_thread_if_any(thread_id: str) -> None:
    """Deletes a thread and all its data, if it exists.

    A record of the app, such as a case, has no thread before its first run.
    """
    try:
        delete_thread(thread_id)
    except Failure as failure:
        if failure.code != codes.NOT_FOUND:
            raise


def threads(search: ThreadSearch) -> ThreadPage:
    """Lists threads of the request's tenant, newest update first.

    For a request without a tenant, lists those without one.

    >>> from wattle.testing import FakeHost
    >>> host = FakeHost().thread(Thread("a", "notes", "idle")).thread(Thread("b", "notes", "idle"))
    >>> with host:
    ...     update_thread("b", {"title": "Tea"})
    ...     page = threads(ThreadSearch("notes", limit=1))
    ...     rest = threads(ThreadSearch("notes", after=page.next))
    >>> [thread.metadata for thread in page.threads]
    [{'title': 'Tea'}]
    >>> [thread.thread_id for thread in rest.threads], rest.next
    (['a'], None)
    """
    return cast(ThreadPage, _host.interface("runs").threads(search))


def update_thread(thread_id: str, metadata: dict[str, Any]) -> None:
    """Adds metadata to a thread. Each field replaces the field of the same name.

    The thread moves to the beginning of lists. Raises `not-found` if the thread does not exist for
    the tenant of the request or has expired, `limit` if the metadata becomes too large, `busy` if a
    run of the thread is active on another host, or if another operation uses the thread for too
    long.
    """
    _host.interface("runs").update_thread(thread_id, metadata)


def _await_other(run: RunRef) -> None:
    """Waits for the run of another request.

    Its outcome does not matter, not even if the run was rejected and never existed: the thread
    determines the next step.
    """
    try:
        wait(run)
    except Failure as failure:
        log.debug(f"wait for the other run of thread `{run.thread_id}`: {failure}")
