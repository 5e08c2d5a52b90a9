"""Language models.

A plugin calls a model through a route. The operator configures the provider, model and key of the
route. Completions are journaled, so a node that is executed again does not pay for them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar, cast, overload

from wattle import _host, _schema
from wattle._attempt import TASK_FAILED, Asked, Checked, Refusal, bounded, run
from wattle._completion import Attempt, Completion, FinishReason, Usage
from wattle._conversation import Conversation, history
from wattle._tool import ToolInfo
from wattle.blob import BlobRef
from wattle.failure import Failure
from wattle.message import Image, Message, Part, Role
from wattle.prompt import fill

__all__ = [
    "Attempt",
    "Checked",
    "Completion",
    "CompletionStream",
    "FinishReason",
    "GeneratedImage",
    "ImageRequest",
    "Refusal",
    "Request",
    "ResponseSchema",
    "RouteInfo",
    "StreamEvent",
    "TASK_FAILED",
    "Task",
    "ToolChoice",
    "ToolDefinition",
    "Usage",
    "complete_all",
    "generate_images",
    "route",
    "stream",
]

HISTORY = "history"
"""Extension field of a request that contains its history."""

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class ToolDefinition:
    """A tool that the model can call."""

    name: str
    """Name of the tool."""
    description: str
    """Description for the model."""
    arguments_schema: Any
    """JSON Schema of the arguments."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @classmethod
    def of(cls, arguments: Any, name: str, description: str) -> Self:
        """Creates a tool whose arguments have the schema of a type."""
        return cls(name, description, _schema.codec(arguments).schema)

    @classmethod
    def from_info(cls, info: ToolInfo) -> Self:
        """Converts a tool from `wattle.tools.list`."""
        return cls(info.name, info.description, info.arguments_schema)


@dataclass(frozen=True)
class ToolChoice:
    """Controls whether the model calls a tool."""

    AUTO: ClassVar[ToolChoice]
    """The model decides whether to call a tool."""
    NONE: ClassVar[ToolChoice]
    """The model must not call a tool."""
    REQUIRED: ClassVar[ToolChoice]
    """The model must call a tool."""

    kind: str
    """Kind of the choice."""
    name: str = ""
    """Name of the tool that the model must call."""

    @classmethod
    def tool(cls, name: str) -> Self:
        """Returns the choice by which the model must call this tool."""
        return cls("tool", name)


ToolChoice.AUTO = ToolChoice("auto")
ToolChoice.NONE = ToolChoice("none")
ToolChoice.REQUIRED = ToolChoice("required")


@dataclass
class ResponseSchema:
    """The schema for structured output.

    The host validates the output and lets the model repair it once.
    """

    name: str
    """Name of the schema: 1 to 64 characters of `[a-zA-Z0-9_-]`."""
    schema: Any
    """JSON Schema. Its root must be an object."""


@dataclass
class Request:
    """A model call.

    >>> request = Request("chat", temperature=0.0).system("Be brief.").user("hello")
    >>> request.text()
    'Be brief.\\nhello'
    """

    route: str
    """Name of the route, from the app's manifest."""
    messages: list[Message] = field(default_factory=list)
    """Messages of the conversation, in order."""
    tools: list[ToolDefinition] = field(default_factory=list)
    """Tools that the model can call."""
    tool_choice: ToolChoice = ToolChoice.AUTO
    """Controls whether the model calls a tool."""
    response_schema: ResponseSchema | None = None
    """Schema for structured output; `None` permits any text."""
    temperature: float | None = None
    """Sampling temperature, 0 for the likeliest completion; `None` selects the route's default."""
    max_output_tokens: int | None = None
    """Maximum number of output tokens; `None` selects the default of the route."""
    seed: int | None = None
    """Seed, for providers with reproducible sampling."""
    stop: list[str] = field(default_factory=list)
    """Stop sequences: strings that end the completion."""
    candidate: int | None = None
    """Number of the only candidate of the route to call, from 0, see `RouteInfo.candidates`."""
    retries: int | None = None
    """Maximum number of retries at each candidate. Overrides the setting of the route."""
    timeout_ms: int | None = None
    """Idle timeout of the model call in milliseconds.

    The maximum wait for the first byte of the response and for each further byte. Overrides the
    setting of the route. The host limits the value.
    """
    repair: bool = True
    """False disables the repair of output that violates the schema.

    The call then fails, with the completion in the details of the failure. For plugins that repair
    completions themselves. By default, the host lets the model repair the completion once.
    """
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def system(self, text: str) -> Self:
        """Adds a system message."""
        return self.message(Message.system(text))

    def user(self, part: Part) -> Self:
        """Adds a message of a person."""
        return self.message(Message.user(part))

    def assistant(self, part: Part) -> Self:
        """Adds a message of the model."""
        return self.message(Message.assistant(part))

    def image(self, image: Image) -> Self:
        """Adds an image to the last message if that is a user message.

        Otherwise adds a new user message.
        """
        if self.messages and self.messages[-1].role == Role.USER:
            self.messages[-1].parts.append(image)
            return self
        return self.user(image)

    def message(self, message: Message) -> Self:
        """Adds a message."""
        self.messages.append(message)
        return self

    def history(
        self,
        conversation: Conversation,
        *,
        starting_at: int = 0,
        after: str | None = None,
        until: int | None = None,
        append: Iterable[Any] = (),
        names: Mapping[str, str] | None = None,
    ) -> Self:
        """Adds the messages of the conversation of the node.

        The host adds them when it calls the model, so the request does not grow with the
        conversation. They follow the messages that the request has so far, and `messages` does not
        contain them. A request has at most one history: another one replaces it.

        `starting_at` leaves out the messages before a position, and `until` those from a position
        on. `after` leaves out the message with an id and all messages before it, in place of
        `starting_at`. `append` adds messages after the conversation, in the format of the reducer
        `messages`; a tool result follows its call, which can be in the conversation. `names` has
        the names under which the model sees tools, of at most 256 bytes each, by the names of the
        calls in the conversation; the host replaces characters that providers reject in all other
        names.

        >>> talk = Conversation("messages", start=40, length=42)
        >>> request = Request("chat").system("Be brief.").history(talk, starting_at=20)
        >>> request.extra["history"]
        {'channel': 'messages', 'at': 1, 'from': 20}
        """
        begin = starting_at if after is None else after
        at = len(self.messages)
        self.extra[HISTORY] = history(conversation, at, begin, until, list(append), names or {})
        return self

    def tool(self, tool: ToolDefinition | ToolInfo) -> Self:
        """Offers a tool."""
        self.tools.append(ToolDefinition.from_info(tool) if isinstance(tool, ToolInfo) else tool)
        return self

    def schema(self, of: Any, name: str) -> Self:
        """Requests structured output with the schema of a type.

        `Completion.structured_as` returns it.
        """
        return self.schema_value(name, _schema.codec(of).schema)

    def schema_value(self, name: str, schema: Any) -> Self:
        """Requests structured output with a JSON Schema."""
        self.response_schema = ResponseSchema(name, schema)
        return self

    def complete(self) -> Completion:
        """Calls the model and waits for the whole completion."""
        return cast(Completion, _host.interface("llm").complete(self))

    def stream(self) -> CompletionStream:
        """Calls the model and streams its completion, see `stream`."""
        return stream(self)

    def text(self) -> str:
        """Returns all text of `messages`. For test scripts whose result depends on it."""
        return "\n".join(message.text() for message in self.messages)


def complete_all(requests: Iterable[Request]) -> list[Completion | Failure]:
    """Makes several model calls concurrently. Returns the results in the order of the requests.

    The result of a call that fails is its `Failure`, which is not raised.
    """
    results = _host.interface("llm").complete_all(list(requests))
    return cast(list[Completion | Failure], results)


@dataclass
class StreamEvent:
    """A delta of a streamed completion."""

    kind: str
    """Kind of the delta.

    `text` and `reasoning` continue what came before, `tool_call_delta` is a part of a tool call.
    `restart` discards the deltas so far: the model writes the completion again, because the first
    one violated the schema. Other kinds are unknown to this version of the SDK.
    """
    text: str = ""
    """The added text or reasoning."""
    index: int = 0
    """Position among the tool calls of the completion, from 0."""
    name: str | None = None
    """Name of the tool, in the first delta of the call."""
    arguments: str = ""
    """The next part of the arguments as JSON text."""
    value: Any = None
    """The delta as JSON, if its kind is unknown."""


class CompletionStream:
    """A streamed completion. The iterator yields its deltas.

    It ends when the completion is complete, and raises the failure of the call. A stream is one
    journaled call, like `Request.complete`. A node that is executed again gets the same completion,
    but the deltas can be split differently. Decisions of a node must therefore depend only on the
    whole completion. Leaving the stream as a context manager before its end cancels the model call.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._ready: Iterator[StreamEvent] = iter(())
        self._is_over = False

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        while not self._is_over:
            event = next(self._ready, None)
            if event is not None:
                return event
            try:
                events = self._handle.next()
            except Failure:
                self._is_over = True
                raise
            self._is_over = not events
            self._ready = iter(events)
        raise StopIteration

    def finish(self) -> Completion:
        """Waits for the whole completion. Skips deltas that were not read."""
        for _ in self:
            pass
        return cast(Completion, self._handle.finish())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._handle.close()


def stream(request: Request) -> CompletionStream:
    """Calls a model and streams its completion.

    For plugins that process deltas themselves. They are not needed to show deltas to users: the
    host streams every model call into the event log.
    """
    return CompletionStream(_host.interface("llm").stream(request))


@dataclass
class ImageRequest:
    """A request for generated images."""

    route: str
    """Name of the route."""
    prompt: str
    """Prompt for the images."""
    count: int = 1
    """Number of images."""
    aspect_ratio: str | None = None
    """Aspect ratio, such as `16:9`; `None` selects the default of the provider."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields: `candidate`, `retries` or `timeout_ms`, as in `Request`."""


@dataclass
class GeneratedImage:
    """A generated image."""

    blob: BlobRef
    """Blob with the data."""
    media_type: str
    """Media type, such as `image/png`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def link(self) -> str:
        """Returns the path under which the host serves the image, like `wattle.blob.link`.

        Empty if the host does not provide one.
        """
        return self._text("link")

    def provider(self) -> str:
        """Returns the name of the provider. Empty if the host does not report it."""
        return self._text("provider")

    def model(self) -> str:
        """Returns the name of the model. Empty if the host does not report it."""
        return self._text("model")

    def _text(self, key: str) -> str:
        text = self.extra.get(key)
        return text if isinstance(text, str) else ""


def generate_images(request: ImageRequest) -> list[GeneratedImage]:
    """Generates images. The host stores them as blobs."""
    return cast(list[GeneratedImage], _host.interface("llm").generate_images(request))


@dataclass
class RouteInfo:
    """The models of a route, without their keys and URLs."""

    provider: str = ""
    """Provider of the first candidate."""
    model: str = ""
    """Model of the first candidate."""
    has_fallback: bool = False
    """True if the route has a fallback."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def candidates(self) -> int:
        """Returns the number of candidates, at least 1."""
        told = self.extra.get("candidates")
        return told if isinstance(told, int) else 1 + int(self.has_fallback)


def route(name: str) -> RouteInfo:
    """Returns the models of a granted route, for the tenant of the call."""
    return cast(RouteInfo, _host.interface("llm").route(name))


REFUSAL = """\
An earlier answer was refused for these reasons:
{{reasons}}
Answer again, whole, with all of them corrected.
"""
"""Default template of the text with the reasons of a refusal."""


@dataclass(frozen=True)
class Task:
    """A request whose completion has to pass a check, with the limits of its attempts.

    The task calls the candidates of its route one after the other, until a completion passes. Each
    candidate gets `retries` retries, whatever failed before: the call, the schema or the check.
    After a failure that a retry cannot correct, the next candidate follows immediately. The request
    after a refused completion has the reasons, so the host does not repair the completion.

    A `Request` whose schema is the only check needs no task, because the host makes retries,
    repairs and fallbacks itself.

    >>> from wattle.testing import FakeHost
    >>> @dataclass
    ... class Plan:
    ...     days: int
    >>> def check(plan: Plan) -> int:
    ...     if not 1 <= plan.days <= 7:
    ...         raise Refusal(f"`days` is {plan.days}; give 1 to 7")
    ...     return plan.days
    >>> answers = [3, 9]
    >>> host = FakeHost().route("plan", RouteInfo())
    >>> with host.llm(lambda _: Completion.of_json({"days": answers.pop()})):
    ...     task = Task("plan", max_output_tokens=1_024, retries=1)
    ...     plan = task.document("Plan a journey.", "To Osaka.", Plan, check)
    >>> plan.value, plan.attempts
    (3, 2)
    >>> "- `days` is 9; give 1 to 7" in host.llm_requests[1].text()
    True
    """

    name: str
    """Name of the task, and of the schema of its documents."""
    route: str | None = None
    """Name of the route; `None` selects the name of the task."""
    refusal: str = REFUSAL
    """Template of the text that a request after a refused completion adds to the user message.

    Its placeholder is `{{reasons}}`. The default is in English.
    """
    temperature: float | None = None
    """Sampling temperature, 0 for the likeliest completion; `None` selects the route's default."""
    max_output_tokens: int | None = None
    """Maximum number of output tokens; `None` selects the default of the route."""
    timeout_ms: int | None = None
    """Idle timeout of an attempt in milliseconds, see `Request.timeout_ms`."""
    retries: int = 0
    """Maximum number of retries with each candidate. Those that the host makes count."""

    @overload
    def document(
        self, system: str, user: str, of: type[T], check: Callable[[T], U]
    ) -> Checked[U]: ...

    @overload
    def document(
        self, system: str, user: str, of: Any, check: Callable[[Any], U]
    ) -> Checked[U]: ...

    def document(self, system: str, user: str, of: Any, check: Callable[[Any], U]) -> Checked[U]:
        """Requests a document of a type.

        `check` returns the value that the plugin makes of the document, or raises a `Refusal` with
        the reasons why it refuses the document.

        Raises `TASK_FAILED` if no completion passes: the message names the task, and the models
        with the reasons of their last attempts; the details have them as `task` and `models`.
        Raises `cancelled` if the run was cancelled, the failure of `route` if the task cannot use
        its route, `internal` if `{{reasons}}` is not the placeholder of `refusal`, and any other
        exception of `check`.
        """
        schema = ResponseSchema(self.name, _schema.codec(of).schema)

        def read(completion: Completion) -> U:
            try:
                document = completion.structured_as(of)
            except Failure as failure:
                raise Refusal(failure.message) from failure
            return check(document)

        return self._run(system, user, schema, read)

    def text(self, system: str, user: str, check: Callable[[str], U]) -> Checked[U]:
        """Requests a text.

        A text that is empty, cut off or withheld is refused before `check` gets it. Otherwise like
        `document`.
        """
        return self._run(system, user, None, lambda completion: check(_whole_text(completion)))

    def _run(
        self,
        system: str,
        user: str,
        schema: ResponseSchema | None,
        read: Callable[[Completion], U],
    ) -> Checked[U]:
        # The template is filled only after a refused completion, and must not fail as late as that.
        fill(self.refusal, reasons="")
        name = self.name if self.route is None else self.route

        def complete(candidate: int, retries: int, reasons: list[str]) -> Completion:
            request = Request(
                name,
                response_schema=schema,
                temperature=self.temperature,
                max_output_tokens=self.max_output_tokens,
                timeout_ms=self.timeout_ms,
                candidate=candidate,
                retries=retries,
                # The next request has all reasons.
                repair=False,
            )
            return request.system(system).user(user + self._refusal_of(reasons)).complete()

        try:
            info = route(name)
        except Failure as failure:
            raise failure.context(self.name) from None
        fallbacks = [f"fallback {number}" for number in range(1, info.candidates())]
        models = [f"{info.provider}:{info.model}", *fallbacks]
        return run(Asked(self.name, models, self.retries + 1, complete, read, []))

    def _refusal_of(self, reasons: list[str]) -> str:
        """Returns the end of the user message; empty without reasons."""
        if not reasons:
            return ""
        lines = "\n".join(f"- {reason}" for reason in bounded(reasons))
        return f"\n\n{fill(self.refusal, reasons=lines)}"


def _whole_text(completion: Completion) -> str:
    """Returns the text of a completion that is complete and not empty."""
    if completion.finish_reason == FinishReason.LENGTH:
        raise Refusal("the answer was cut off at its length limit; be shorter")
    if completion.finish_reason == FinishReason.CONTENT_FILTER:
        raise Refusal("the answer was withheld by the provider")
    if not completion.is_answer():
        raise Refusal("the answer is empty")
    return completion.text()
