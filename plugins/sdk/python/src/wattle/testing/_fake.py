"""The fake host: methods that set its script, and the recorded calls."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from typing import Any, Self, TypeVar

from wattle._tool import ToolInfo, ToolOutput
from wattle.http import Request as HttpRequest
from wattle.http import Response as HttpResponse
from wattle.interrupt import Question
from wattle.llm import Completion, ImageRequest, RouteInfo
from wattle.llm import Request as ModelRequest
from wattle.runs import EndedRun, Resume, RunRef, Start, Thread
from wattle.sql import Rows
from wattle.testing._record import Logged, SqlAnswer, Statement
from wattle.testing._state import State, enter, leave
from wattle.tools import Call

T = TypeVar("T")


class FakeHost:
    """A fake host that implements all imports with a script.

    Calls go to the fake host of `run`, or of the `with` statement around them. Its clock is stopped
    at 2026-01-01T00:00:00Z, its time zone is UTC, and blobs and memory are empty. Scripts raise a
    `Failure` for a call that fails.

    >>> from wattle import emit
    >>> host = FakeHost()
    >>> host.run(lambda: emit.custom("page-read", {"page": 3}))
    >>> host.emitted
    [('page-read', {'page': 3})]
    """

    llm_requests: list[ModelRequest]
    """The requests of model calls."""
    image_requests: list[ImageRequest]
    """The image requests that succeeded."""
    tool_calls: list[Call]
    """The tool calls in order."""
    set_routes: list[tuple[str, Any]]
    """The names and configurations of the routes that were set for the tenant, with their keys."""
    http_requests: list[HttpRequest]
    """The HTTP requests."""
    statements: list[Statement]
    """The SQL statements, including `BEGIN`, `COMMIT` and `ROLLBACK`."""
    questions: list[Question]
    """The questions of the interrupts."""
    emitted: list[tuple[str, Any]]
    """The names and data of custom events."""
    progress: list[tuple[str, float | None]]
    """The messages and fractions of reported progress."""
    logged: list[Logged]
    """The log messages."""
    started: list[Start]
    """The requests of started runs."""
    resumed: list[Resume]
    """The requests of resumed threads."""
    cancelled: list[RunRef]
    """The cancelled runs."""

    def __init__(self) -> None:
        """Creates a fake host without scripts."""
        self.state = State()
        self._entered: list[Token[FakeHost | None]] = []
        self.llm_requests = []
        self.image_requests = []
        self.tool_calls = []
        self.set_routes = []
        self.http_requests = []
        self.statements = []
        self.questions = []
        self.emitted = []
        self.progress = []
        self.logged = []
        self.started = []
        self.resumed = []
        self.cancelled = []

    def run(self, work: Callable[[], T]) -> T:
        """Runs a function in which SDK calls go to this fake host."""
        with self:
            return work()

    def __enter__(self) -> Self:
        self._entered.append(enter(self))
        return self

    def __exit__(self, *_: object) -> None:
        leave(self._entered.pop())

    def llm(self, script: Callable[[ModelRequest], Completion]) -> Self:
        """Sets the script of model calls, including streamed ones."""
        return self._script("llm", script)

    def images(self, script: Callable[[ImageRequest], list[tuple[str, bytes]]]) -> Self:
        """Sets the script of image generation, which returns media types and bytes."""
        return self._script("images", script)

    def http(self, script: Callable[[HttpRequest], HttpResponse]) -> Self:
        """Sets the script of HTTP requests."""
        return self._script("http", script)

    def sql(self, script: Callable[[Statement], SqlAnswer | Rows]) -> Self:
        """Sets the script of SQL statements."""
        return self._script("sql", script)

    def dialect(self, dialect: str) -> Self:
        """Sets the SQL dialect of all databases. Default: `sqlite`."""
        self.state.dialect = dialect
        return self

    def tool(self, name: str, script: Callable[[Any], ToolOutput]) -> Self:
        """Grants a tool of another plugin and sets the script of its calls."""
        return self.described_tool(ToolInfo(name), script)

    def described_tool(self, info: ToolInfo, script: Callable[[Any], ToolOutput]) -> Self:
        """Grants a tool with a description and sets the script of its calls."""
        self.state.tools.append((info, script))
        return self

    def route(self, name: str, info: RouteInfo) -> Self:
        """Sets the models of a route."""
        self.state.routes[name] = info
        return self

    def tenant_route(self, name: str, config: Any) -> Self:
        """Sets a route of the tenant."""
        self.state.tenant_routes[name] = config
        return self

    def now_ms(self, now_ms: int) -> Self:
        """Sets the clock, in milliseconds since 1970."""
        self.state.now_ms = now_ms
        return self

    def zone(self, name: str, offset_seconds: int) -> Self:
        """Adds a time zone with a fixed offset, and makes it the operator's time zone."""
        self.state.zones.append((name, offset_seconds))
        return self

    def answer(self, answer: Any) -> Self:
        """Adds an answer. Each interrupt takes the first answer that is not used yet."""
        self.state.answers.append(answer)
        return self

    def setting(self, name: str, value: Any) -> Self:
        """Sets a setting of the app."""
        self.state.settings[name] = value
        return self

    def run_ends(self, script: Callable[[RunRef], EndedRun]) -> Self:
        """Sets the script that returns the outcomes of runs."""
        return self._script("run_ends", script)

    def starts(self, script: Callable[[Start], None]) -> Self:
        """Sets the script of run starts, which can reject a start.

        Without a script, every start succeeds.
        """
        return self._script("starts", script)

    def resumes(self, script: Callable[[Resume], None]) -> Self:
        """Sets the script of resumes, which can reject a resume.

        Without a script, every resume succeeds.
        """
        return self._script("resumes", script)

    def thread(self, thread: Thread) -> Self:
        """Adds a thread."""
        self.state.threads[thread.thread_id] = thread
        return self

    def event(self, thread_id: str, event: Any) -> Self:
        """Appends an event to a thread. The first event has the sequence number 1."""
        self.state.events.append((thread_id, event))
        return self

    def advance_ms(self, ms: int) -> None:
        """Advances both the wall clock and the monotonic clock."""
        self.state.now_ms += ms
        self.state.monotonic_ns += ms * 1_000_000

    def _script(self, method: str, script: Callable[..., Any]) -> Self:
        self.state.scripts[method] = script
        return self
