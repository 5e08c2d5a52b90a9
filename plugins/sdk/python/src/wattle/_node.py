"""Graph nodes: the context of a node and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar, overload

from wattle import _json, _schema
from wattle._conversation import Conversation
from wattle.failure import Failure

END = "END"
"""Target for `Outcome.goto` that ends this branch of the graph."""

CONFIG = "config"
CONVERSATION = "conversation"
ERROR = "error"
PARENT = "parent"
TIMEOUT_MS = "timeout_ms"

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class NodeError:
    """The failure that an error handler handles."""

    node: str = ""
    """Name of the node that failed."""
    task: str = ""
    """Id of the failed task."""
    code: str = ""
    """Code of the failure, see `wattle.code`."""
    message: str = ""
    """Message of the failure. It contains the name of the node."""
    details: Any = None
    """Structured details; `None` if there are none."""


@dataclass
class Context:
    """The context in which a node runs."""

    node: str = ""
    """Name of the node in the plugin."""
    graph: str = ""
    """Name of the graph."""
    thread_id: str = ""
    """Id of the thread."""
    run_id: str = ""
    """Id of the run."""
    task_id: str = ""
    """Id of the task. It does not change when the task is executed again."""
    step: int = 0
    """Number of the superstep in its thread, from 0."""
    attempt: int = 0
    """Number of the attempt, from 1."""
    remaining_steps: int = 0
    """Number of supersteps that the recursion limit still permits."""
    tenant: str | None = None
    """Tenant of the thread, if it has one."""
    context: Any = None
    """The run context; `None` if there is none."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    @overload
    def run_context(self, of: type[T]) -> T: ...

    @overload
    def run_context(self, of: Any = None) -> Any: ...

    def run_context(self, of: Any = None) -> Any:
        """Returns the run context as a type.

        >>> Context(context={"language": "de"}).run_context(dict[str, str])["language"]
        'de'
        """
        return _schema.decode("the run's context", of, self.context)

    @overload
    def config(self, of: type[T]) -> T: ...

    @overload
    def config(self, of: Any = None) -> Any: ...

    def config(self, of: Any = None) -> Any:
        """Returns the configuration of the node as a type.

        The configuration is the table `with` of the node in the graph file. If the table is
        missing, the type is decoded from an empty object, which succeeds if all fields have
        defaults. `@node(config=...)` publishes the schema of the type, so that the host rejects a
        graph with an invalid configuration when it loads the graph. Unknown fields are refused.
        """
        config = self.extra.get(CONFIG)
        config = {} if config is None else config
        if of is None:
            return config
        what = f"the configuration of node `{self.node}`"
        return _schema.codec(of, is_closed=True).decode(what, config)

    def error(self) -> NodeError | None:
        """Returns the failure that this node handles.

        Returns `None` unless the node runs as an error handler (`on_error` in the graph file).
        """
        error = self.extra.get(ERROR)
        if error is None:
            return None
        if not isinstance(error, dict):
            return NodeError(message=str(error))
        texts = {name: str(error.get(name, "")) for name in ("node", "task", "code", "message")}
        return NodeError(**texts, details=error.get("details"))

    def conversation(self) -> Conversation:
        """Returns the conversation that the node declares with `@node(reads=...)`.

        Without a list in the channel, or without the channel in the graph, the conversation has no
        messages. Raises `unsupported` if the node declares no conversation, or if the host is too
        old for histories.
        """
        conversation = self.extra.get(CONVERSATION)
        if conversation is None:
            raise Failure.unsupported(
                f"node `{self.node}` got no conversation from the host: the version of Wattle is "
                "too old for the plugin, or the node declares no conversation; update Wattle, or "
                "declare it in `reads`"
            )
        return Conversation.from_json(conversation)

    def with_error(self, error: NodeError) -> Self:
        """Sets the failure that the node handles, for tests."""
        self.extra[ERROR] = dict(vars(error))
        return self

    def with_config(self, config: Any) -> Self:
        """Sets the configuration of the node, for tests."""
        self.extra[CONFIG] = config
        return self

    def with_conversation(self, conversation: Conversation) -> Self:
        """Sets the conversation of the node, for tests of a later turn.

        `testing.run_node` sets it for an input with the whole conversation.
        """
        self.extra[CONVERSATION] = conversation.to_json()
        return self


@dataclass
class Update:
    """A write to one state channel."""

    channel: str
    """Name of the channel to write."""
    value: Any
    """Value that the reducer combines with the channel."""
    overwrite: bool = False
    """True to replace the value of the channel instead of calling the reducer."""


@dataclass
class Send:
    """A task for the next superstep with its own input instead of the state."""

    node: str
    """Name of the node."""
    input: Any
    """Input of the task."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""


@dataclass
class Decision:
    """The outcome of a node with one update per channel."""

    updates: list[Update] = field(default_factory=list)
    """Writes to the state."""
    goto: list[str] = field(default_factory=list)
    """Nodes to run next, instead of those to which the edges lead."""
    sends: list[Send] = field(default_factory=list)
    """Tasks for the next superstep, each with its own input."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Extension fields."""

    def update(self, channel: str) -> Any:
        """Returns the value that is written to a channel, or `None` if there is none."""
        found = (update.value for update in self.updates if update.channel == channel)
        return next(found, None)


class Outcome(Generic[U]):
    """Updates of channels together with the nodes to run next.

    A node that only writes channels can return its updates. `Outcome` adds targets, sends and
    overwrites.

    >>> outcome = Outcome({"draft": "better"}).overwrite("draft").goto("review")
    >>> outcome = outcome.send("notify", {"n": 1})
    """

    def __init__(self, updates: U | None = None) -> None:
        """Creates an outcome that writes the updates and follows the edges of the graph."""
        self._updates = updates
        self._goto: list[str] = []
        self._sends: list[Send] = []
        self._overwrites: list[str] = []
        self._extra: dict[str, Any] = {}

    def goto(self, node: str) -> Self:
        """Selects a node to run next, instead of the nodes to which the edges lead.

        Repeated calls select several nodes. See `END`.
        """
        self._goto.append(node)
        return self

    def send(self, node: str, input: Any, *, timeout_ms: int | None = None) -> Self:
        """Runs a node in the next superstep with its own input instead of the state.

        Repeated calls send several tasks. `timeout_ms` limits each attempt of the task.
        """
        extra = {} if timeout_ms is None else {TIMEOUT_MS: timeout_ms}
        input = _json.to_value(f"the input sent to `{node}`", input)
        self._sends.append(Send(node, input, extra))
        return self

    def overwrite(self, channel: str) -> Self:
        """Makes the update of a channel an overwrite.

        It replaces the value instead of passing it to the reducer. The outcome fails with
        `internal` if the updates do not contain the channel.
        """
        self._overwrites.append(channel)
        return self

    def for_parent(self) -> Self:
        """Applies the whole outcome to the parent graph, which runs this graph as a node.

        The updates apply to channels of the parent, `goto` and sends to nodes of the parent, and
        this graph ends. Invalid in a root graph.
        """
        return self.with_extra(PARENT, True)

    def with_extra(self, key: str, value: Any) -> Self:
        """Adds an extension field."""
        self._extra[key] = value
        return self

    def decide(self, output: _schema.Codec | None = None) -> Decision:
        """Splits the updates by channel, and checks them against the type of a node's output."""
        updates = _updates(self._updates, output)
        for channel in self._overwrites:
            written = [update for update in updates if update.channel == channel]
            if not written:
                raise Failure.internal(
                    f"overwrite channel `{channel}`: the updates do not write it"
                )
            written[0].overwrite = True
        return Decision(updates, list(self._goto), list(self._sends), dict(self._extra))


def decide(returned: Any, output: _schema.Codec | None = None) -> Decision:
    """Converts what a node returned: updates, an `Outcome` around them, or `None`."""
    outcome = returned if isinstance(returned, Outcome) else Outcome(returned)
    return outcome.decide(output)


def _updates(returned: Any, output: _schema.Codec | None) -> list[Update]:
    if returned is None:
        return []
    values = _json.to_value("the updates", returned)
    if not isinstance(values, dict):
        raise Failure.internal(
            "the updates of a node are not an object; return a dictionary or a dataclass with one "
            "field per channel"
        )
    if output is not None:
        _check(values, output)
    return [Update(channel, value) for channel, value in values.items()]


def _check(values: dict[str, Any], output: _schema.Codec) -> None:
    """Checks updates here, because the host does not know their place in the code."""
    known = output.schema.get("properties")
    unknown = [name for name in values if known is not None and name not in known]
    if unknown:
        raise Failure.internal(
            f"the updates write `{unknown[0]}`, which the return type does not declare"
        )
    try:
        output.check("the return value", values)
    except Failure as failure:
        raise Failure.internal(failure.message, details=failure.details) from None
