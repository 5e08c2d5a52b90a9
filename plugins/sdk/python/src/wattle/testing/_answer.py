"""The implementation of the imports by the current fake host.

It has the same functions as the implementation for components.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from wattle import llm as words
from wattle._completion import CALL_IDS
from wattle.blob import BlobRef, Info
from wattle.clock import Civil, Zoned
from wattle.failure import Failure
from wattle.message import Reasoning, ToolCall
from wattle.runs import PAGE_EVENTS, REJECT_IF_INTERRUPTED, RunRef
from wattle.sql import Executed, Rows
from wattle.testing import _threads
from wattle.testing._memory import MEMORY
from wattle.testing._record import Logged, SqlAnswer, Statement
from wattle.testing._state import current, find, play

MAX_RANDOM_BYTES = 4096
"""Maximum number of random bytes per call, as in the host."""

KEYS = ("key", "api_key")
"""Fields of a route that the host never returns."""


def _settled(call: Callable[[Any], Any], requests: list[Any]) -> list[Any]:
    """Makes several calls. The result of a call that fails is its failure."""
    results: list[Any] = []
    for request in requests:
        try:
            results.append(call(request))
        except Failure as failure:
            results.append(failure)
    return results


def _blob(reference: str) -> tuple[str, bytes]:
    found = current().state.blobs.get(reference)
    if found is None:
        raise Failure.not_found(f"there is no blob `{reference}`")
    return found


def _put(data: bytes, media_type: str) -> BlobRef:
    # The host uses another digest, which the standard library does not have.
    reference = BlobRef(f"blob:{hashlib.sha256(data).hexdigest()}")
    current().state.blobs[reference] = (media_type, bytes(data))
    return reference


def _get(reference: str, offset: int, length: int | None) -> bytes:
    data = _blob(reference)[1][offset:]
    return data if length is None else data[:length]


def _stat(reference: str) -> Info:
    media_type, data = _blob(reference)
    return Info(BlobRef(reference), len(data), media_type)


def _link(reference: str) -> str:
    """Returns a path whose signature is not valid."""
    _blob(reference)
    return f"/blobs/~/{reference.removeprefix('blob:')}"


def _zone(zone: str | None) -> tuple[str, int]:
    """Returns the time zone with a name that was set last, or the one that was set last."""
    for name, offset in reversed(current().state.zones):
        if zone is None or zone == name:
            return name, offset
    raise Failure.invalid(f"there is no time zone `{zone}`; add it with `FakeHost.zone`")


def _to_zone(unix_ms: int, zone: str | None) -> Zoned:
    name, offset = _zone(zone)
    at = datetime(1970, 1, 1) + timedelta(milliseconds=unix_ms, seconds=offset)
    ms = at.microsecond // 1000
    civil = Civil(at.year, at.month, at.day, at.hour, at.minute, at.second, ms)
    return Zoned(civil, offset, at.isoweekday(), name)


def _from_zone(civil: Civil, zone: str | None) -> int:
    day = datetime(civil.year, civil.month, civil.day, tzinfo=UTC)
    seconds = int(day.timestamp()) + civil.hour * 3600 + civil.minute * 60 + civil.second
    return (seconds - _zone(zone)[1]) * 1000 + civil.millisecond


def _send(request: Any) -> Any:
    current().http_requests.append(copy.deepcopy(request))
    response = play("http", request)
    response.url = response.url or request.url
    return response


def _ask(question: Any) -> Any:
    host = current()
    host.questions.append(copy.deepcopy(question))
    if not host.state.answers:
        # A real host unwinds the plugin at this point.
        raise Failure(
            "interrupted",
            "the interrupt has no answer; a host interrupts the run here, a test sets one with "
            "`FakeHost.answer`",
        )
    return host.state.answers.popleft()


def _complete(request: Any) -> Any:
    current().llm_requests.append(copy.deepcopy(request))
    completion = play("llm", request)
    if words.HISTORY in request.extra and completion.tool_calls():
        # The ids are those of the script unless it sets others.
        ids = [call.id for call in completion.tool_calls()]
        return replace(completion, extra={CALL_IDS: ids, **completion.extra})
    return completion


class _Stream:
    """A completion whose deltas have one word each. All deltas are available immediately."""

    def __init__(self, request: Any) -> None:
        self._completion = _complete(request)
        self._events = _deltas(self._completion)

    def next(self) -> list[words.StreamEvent]:
        events, self._events = self._events, []
        return events

    def finish(self) -> words.Completion:
        return self._completion

    def close(self) -> None:
        self._events = []


def _deltas(completion: words.Completion) -> list[words.StreamEvent]:
    events: list[words.StreamEvent] = []
    calls = 0
    for part in completion.parts:
        if isinstance(part, str | Reasoning):
            kind, text = ("text", part) if isinstance(part, str) else ("reasoning", part.text)
            pieces = text.split(" ")
            texts = [f"{piece} " for piece in pieces[:-1]] + pieces[-1:]
            events += [words.StreamEvent(kind, it) for it in texts if it]
        elif isinstance(part, ToolCall):
            text = json.dumps(part.arguments, separators=(",", ":"))
            kind = "tool_call_delta"
            event = words.StreamEvent(kind, index=calls, name=part.name, arguments=text)
            events.append(event)
            calls += 1
    return events


def _generate_images(request: Any) -> list[words.GeneratedImage]:
    images = []
    for media_type, data in play("images", request):
        blob = _put(data, media_type)
        extra = {"link": _link(blob), "provider": "fake", "model": request.route}
        images.append(words.GeneratedImage(blob, media_type, extra))
    current().image_requests.append(request)
    return images


def _route(name: str) -> Any:
    info = current().state.routes.get(name)
    if info is None:
        raise Failure.not_found(f"there is no route `{name}`; add it with `FakeHost.route`")
    return info


def _log(level: Any, message: str, fields: dict[str, Any]) -> None:
    # Without a fake host, the message is dropped, so that pure functions that log remain testable.
    host = find()
    if host is not None:
        host.logged.append(Logged(level, message, fields))


def _u64() -> int:
    """Returns the next number of SplitMix64. Each test run gets the same numbers."""
    state = current().state
    mask = (1 << 64) - 1
    state.random = (state.random + 0x9E37_79B9_7F4A_7C15) & mask
    mixed = ((state.random ^ (state.random >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D0_49BB_1331_11EB) & mask
    return mixed ^ (mixed >> 31)


def _random_bytes(length: int) -> bytes:
    length = min(length, MAX_RANDOM_BYTES)
    numbers = (_u64().to_bytes(8, "little") for _ in range(-(-length // 8)))
    return b"".join(numbers)[:length]


def _run(thread_id: str | None) -> RunRef:
    host = current()
    number = len(host.started) + len(host.resumed) + 1
    return RunRef(thread_id or f"thread-{number}", f"run-{number}")


def _start(request: Any) -> RunRef:
    if "starts" in current().state.scripts:
        play("starts", request)
    if request.reject_if_interrupted or request.extra.get(REJECT_IF_INTERRUPTED) is True:
        _threads.reject_if_interrupted(request.graph, request.thread_id)
    run = _run(request.thread_id)
    current().started.append(copy.deepcopy(request))
    return run


def _resume(request: Any) -> RunRef:
    if "resumes" in current().state.scripts:
        play("resumes", request)
    run = _run(request.thread_id)
    current().resumed.append(copy.deepcopy(request))
    return run


def _events(thread_id: str, after: int, limit: int) -> list[Any]:
    state = current().state
    own = [event for thread, event in state.events if thread == thread_id]
    if not own and thread_id not in state.threads:
        raise Failure.not_found(f"there is no thread `{thread_id}`")
    return own[after : after + min(limit, PAGE_EVENTS)]


def _setting(name: str) -> str | None:
    settings = current().state.settings
    return json.dumps(settings[name]) if name in settings else None


def _statement(statement: Statement) -> SqlAnswer:
    current().statements.append(copy.deepcopy(statement))
    answer = play("sql", statement)
    return SqlAnswer(answer, len(answer)) if isinstance(answer, Rows) else answer


def _query(database: str, text: str, parameters: list[Any]) -> Rows:
    return _statement(Statement(database, text, parameters)).rows


def _execute(database: str, text: str, parameters: list[Any]) -> Executed:
    answer = _statement(Statement(database, text, parameters))
    return Executed(answer.rows_affected, answer.rows)


class _Transaction:
    """A transaction whose commit or rollback is recorded."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._is_over = False
        self._note("BEGIN")

    def _note(self, text: str) -> None:
        current().statements.append(Statement(self._database, text, [], in_transaction=True))

    def query(self, text: str, parameters: list[Any]) -> Rows:
        return _statement(Statement(self._database, text, parameters, in_transaction=True)).rows

    def execute(self, text: str, parameters: list[Any]) -> Executed:
        statement = Statement(self._database, text, parameters, in_transaction=True)
        answer = _statement(statement)
        return Executed(answer.rows_affected, answer.rows)

    def commit(self) -> None:
        self._is_over = True
        self._note("COMMIT")

    def rollback(self) -> None:
        self._is_over = True
        self._note("ROLLBACK")

    def close(self) -> None:
        if not self._is_over:
            self.rollback()


def _set_route(route: str, config: Any) -> None:
    current().set_routes.append((route, copy.deepcopy(config)))
    if isinstance(config, dict):
        config = {name: value for name, value in config.items() if name not in KEYS}
    current().state.tenant_routes[route] = config


def _call(call: Any) -> Any:
    current().tool_calls.append(copy.deepcopy(call))
    for info, script in current().state.tools:
        if call.tool in (info.name, info.reference()):
            return script(call.arguments)
    raise Failure.not_found(f"there is no tool `{call.tool}`; add it with `FakeHost.tool`")


INTERFACES: dict[str, Any] = {
    "blob": SimpleNamespace(put=_put, get=_get, stat=_stat, link=_link),
    "clock": SimpleNamespace(
        now=lambda: current().state.now_ms,
        monotonic=lambda: current().state.monotonic_ns,
        time_zone=lambda: _zone(None)[0],
        to_zone=_to_zone,
        from_zone=_from_zone,
    ),
    "emit": SimpleNamespace(
        custom=lambda name, data: current().emitted.append((name, data)),
        progress=lambda message, fraction: current().progress.append((message, fraction)),
    ),
    "http": SimpleNamespace(send=_send, send_all=lambda it: _settled(_send, it)),
    "interrupt": SimpleNamespace(ask=_ask),
    "llm": SimpleNamespace(
        complete=_complete,
        complete_all=lambda requests: _settled(_complete, requests),
        stream=_Stream,
        generate_images=_generate_images,
        route=_route,
    ),
    "log": SimpleNamespace(write=_log),
    "memory": MEMORY,
    "random": SimpleNamespace(bytes=_random_bytes, u64=_u64),
    "runs": SimpleNamespace(
        start=_start,
        resume=_resume,
        wait=lambda run: play("run_ends", run),
        cancel=lambda run: current().cancelled.append(run),
        thread=lambda thread_id: current().state.threads.get(thread_id),
        delete_thread=lambda thread_id: current().state.threads.pop(thread_id, None),
        threads=_threads.search,
        update_thread=_threads.update,
        events=_events,
    ),
    "settings": SimpleNamespace(get=_setting, all=lambda: json.dumps(current().state.settings)),
    "sql": SimpleNamespace(
        query=_query,
        execute=_execute,
        begin=_Transaction,
        dialect=lambda database: current().state.dialect,
    ),
    "tenants": SimpleNamespace(
        set_route=_set_route,
        get_route=lambda route: current().state.tenant_routes.get(route),
        remove_route=lambda route: current().state.tenant_routes.pop(route, None),
    ),
    "tools": SimpleNamespace(
        list=lambda: [info for info, _ in current().state.tools],
        call=_call,
        call_all=lambda calls: _settled(_call, calls),
    ),
}
"""The implementation of each import, by its name."""
