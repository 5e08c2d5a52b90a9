"""Ended runs of a conversation, as responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from wattle import log, status
from wattle.chat._document import Document
from wattle.chat._last_reply import ReplyStep
from wattle.chat._texts import Texts
from wattle.failure import Failure
from wattle.runs import Interrupt, Outcome
from wattle.web import Response


@dataclass
class Reply(Document):
    """The reply to a message."""

    thread_id: str
    reply: str
    steps: list[ReplyStep]


@dataclass
class Question(Document):
    """A tool call that waits for approval."""

    OMITTED = ("responseSchema",)

    id: str
    payload: Any
    response_schema: Annotated[
        Any,
        "JSON Schema for the answer; absent if the interrupt has none.",
    ] = None

    @classmethod
    def of(cls, interrupt: Interrupt) -> Question:
        """Creates the question of a pending interrupt."""
        return cls(interrupt.id, interrupt.payload, interrupt.response_schema)


@dataclass
class Waiting(Document):
    """A run that waits for approvals."""

    thread_id: str
    reply: str
    questions: list[Question]
    steps: list[ReplyStep]


@dataclass
class ChatError(Document):
    """The reason of a refused request or a failed run, for users."""

    OMITTED = ("threadId", "steps")

    error: str
    thread_id: Annotated[
        str | None,
        "The conversation of a failed run. Its next message continues it.",
    ] = None
    steps: Annotated[list[ReplyStep] | None, "The steps of a failed run."] = None


@dataclass
class Ended:
    """A run of a conversation that has ended or is interrupted."""

    thread_id: str
    """Id of the thread."""
    outcome: Outcome
    """Outcome of the run."""
    reply: str
    """Text of the last model turn; empty if it has none."""
    steps: list[ReplyStep]
    """The model turns and tool calls since the last message of the user."""
    texts: Texts = Texts.ENGLISH
    """Texts for runs that have no reply."""

    def into_response(self) -> Response:
        """Returns the response for the outcome, as `respond` does.

        For a failed run it has status 502 and the text `Texts.failed`.
        """
        return self.respond(lambda _: (status.BAD_GATEWAY, self.texts.failed))

    def respond(self, describe: Callable[[Failure], tuple[int, str]]) -> Response:
        """Returns the response for the outcome.

        It is a `Reply` with status 200 for a completed run, a `Waiting` with 202 for an interrupted
        one, and a `ChatError` for any other. `describe` returns the status and the text for the
        failure of a failed run, which is logged. A cancelled run has the status 409.
        """
        outcome = self.outcome
        if outcome.kind == "completed":
            return Response.json(200, Reply(self.thread_id, self.reply, self.steps))
        if outcome.kind == "interrupted":
            questions = [Question.of(interrupt) for interrupt in outcome.interrupts]
            body = Waiting(self.thread_id, self.reply, questions, self.steps)
            return Response.json(status.ACCEPTED, body)
        code, error = status.CONFLICT, self.texts.cancelled
        if outcome.failure is not None:
            failure = outcome.failure
            log.warn(f"the run on thread `{self.thread_id}` failed: {failure}")
            code, error = describe(failure)
        return Response.json(code, ChatError(error, self.thread_id, self.steps))
