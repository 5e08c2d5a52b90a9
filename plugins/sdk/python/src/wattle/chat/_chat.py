"""The conversations of a graph, and the work of their endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from wattle import code as codes
from wattle import log, runs, status
from wattle._whitespace import WHITESPACE
from wattle.chat import _last_reply, _list, _shown, _stored
from wattle.chat._agent import Agent
from wattle.chat._document import Document
from wattle.chat._ended import Ended, Question
from wattle.chat._list import TITLE, ThreadList, TitleRequest
from wattle.chat._texts import Texts
from wattle.chat.ui import UiMessage
from wattle.failure import Failure, detail_of
from wattle.runs import EndedRun, Resume, RunRef, Start, Thread, ThreadSearch
from wattle.web import HandOff, Request, Response, StreamFormat, refuse

T = TypeVar("T")

THREAD_HEADER = "x-thread-id"
"""Header with the thread id, with which the next message can continue the conversation."""

FORMATS = {"sse": StreamFormat.SSE, "ai-sdk": StreamFormat.AI_SDK}
"""The formats of a stream by their names in a query."""


@dataclass
class ChatRequest(Document):
    """A message, or the request to reply to the last message again (`retry`)."""

    thread_id: Annotated[str | None, "Conversation of the message; a new one without it."] = None
    message: str = ""
    retry: Annotated[
        bool,
        "Requests a reply to the last message after a failed run, in place of a new message.",
    ] = False


@dataclass
class AnswerRequest:
    """The answer to a question of a conversation."""

    id: Annotated[str, "Id of the question."]
    answer: Annotated[
        Any,
        'For an approval of the plugin `std` the decision, such as `{"decision": "approve"}`.',
    ]


@dataclass
class ThreadDocument(Document):
    """A conversation."""

    OMITTED = ("questions",)

    thread_id: str
    status: Annotated[str, "`running` during a run."]
    messages: list[UiMessage]
    questions: Annotated[list[Question] | None, "Pending questions; absent if there are none."] = (
        None
    )


@dataclass(frozen=True)
class Chat:
    """The conversations of a graph."""

    graph: str
    """Name of the graph."""
    agent: Agent = Agent.DEFAULT
    """The agent: the channel with the messages, and the node whose model calls are streamed to
    clients."""
    message_chars: int = 20_000
    """Maximum number of characters of a message."""
    title_chars: int | None = None
    """Gives new conversations a title: the beginning of the first line of the message, of at most
    this number of characters. `list` shows it, and `rename` replaces it."""
    cancel_on_disconnect_ms: int | None = None
    """Cancels a run if the last client of its stream disconnects and none connects again within
    this time, see `HandOff.cancel_on_disconnect`. `None` continues the run."""
    texts: Texts = Texts.ENGLISH
    """The texts for users."""

    def send(self, request: Request) -> RunRef:
        """Starts a run with the message of a `ChatRequest`.

        A retry starts a run without a new message, because tools could act twice on a message that
        is sent twice. Both are refused while a question of the conversation is pending. A run that
        starts without the answer would give up the tool call that waits for it.

        Raises a failure with a status for a refused request, see `Texts`.
        """
        body = self._body(request, ChatRequest, self.texts.malformed)
        thread_id = body.thread_id or None
        if body.retry:
            return self._retry(thread_id)
        message = body.message.strip(WHITESPACE)
        if not message:
            raise refuse(status.BAD_REQUEST, self.texts.empty)
        if len(message) > self.message_chars:
            raise refuse(status.PAYLOAD_TOO_LARGE, self.texts.too_long)
        input = {self.agent.channel: [{"role": "user", "content": message}]}
        start = Start(self.graph, input, thread_id)
        if self.title_chars is not None:
            is_new = thread_id is None or runs.find(self.graph, thread_id) is None
            if is_new:
                start.metadata = {TITLE: _list.title_of(message, self.title_chars)}
        return self._start(start)

    def stream(self, request: Request) -> Response:
        """Sends a message as `send` does and hands the stream of the run off.

        It has the form of the host's own events, or with `?format=ai-sdk` of a message of the AI
        SDK. The header `x-thread-id` has the id of the thread.
        """
        format = self._format(request, StreamFormat.SSE)
        run = self.send(request)
        return self._hand_off(run, format).with_header(THREAD_HEADER, run.thread_id)

    def wait(self, run: RunRef) -> Ended:
        """Waits until a run has ended or is interrupted, for a response without a stream."""
        return self._ended(runs.wait(run))

    def show(self, thread_id: str) -> ThreadDocument:
        """Returns a conversation with its messages and pending questions.

        Messages of the active run are omitted, because its stream has them from the beginning.
        Raises `not-found` with status 404 if the graph has no such thread.
        """
        thread = self._find(thread_id)
        messages = _shown.of_state(
            self._messages(thread.state), not thread.is_running(), self.texts.unfinished
        )
        questions = [Question.of(interrupt) for interrupt in _pending(thread)]
        return ThreadDocument(thread.thread_id, thread.status, messages, questions or None)

    def join(self, thread_id: str, request: Request) -> Response:
        """Hands the stream of the active run off, from its beginning.

        It has the form of a message of the AI SDK, because `useChat` resumes a stream without
        parameters, or with `?format=sse` of the host's own events. Responds with 204 if there is
        none. Raises a failure with status 400 for an unknown format; `not-found` with status 404 if
        the graph has no such thread.
        """
        format = self._format(request, StreamFormat.AI_SDK)
        run = self._find(thread_id).active_run()
        return Response.empty(status.NO_CONTENT) if run is None else self._hand_off(run, format)

    def cancel(self, thread_id: str) -> ThreadDocument:
        """Cancels the active run, waits for its end, and returns the conversation.

        Without an active run nothing changes. Raises `not-found` with status 404 if the graph has
        no such thread.
        """
        run = self._find(thread_id).active_run()
        if run is not None:
            runs.cancel_and_wait(run)
        return self.show(thread_id)

    def list(self, request: Request) -> ThreadList:
        """Lists the conversations of the tenant of a request, newest update first.

        The query parameters of the request are `limit`, which is 50 by default and at most 200,
        `after`, which is `next` of the page before, and `text`, which selects conversations by
        their titles and ids. Raises a failure with status 400 for a parameter that is not valid.
        """
        try:
            limit = request.number("limit", range(2**32))
            limit = _list.DEFAULT_LIMIT if limit is None else min(max(limit, 1), _list.MAX_LIMIT)
            text, after = request.query("text"), request.query("after")
            page = ThreadSearch(self.graph, text, after=after, limit=limit).run()
        except Failure as failure:
            if failure.code != codes.INVALID:
                raise
            raise refuse(status.BAD_REQUEST, self.texts.list) from None
        return ThreadList.of(page)

    def rename(self, thread_id: str, request: Request) -> None:
        """Sets the title of a conversation to that of a `TitleRequest`.

        Raises a failure with status 400 for a title without 1 to 200 characters; `not-found` with
        status 404 if the graph has no such thread; a failure with status 409 if the thread is in
        use.
        """
        body = self._body(request, TitleRequest, self.texts.title)
        title = body.title.strip(WHITESPACE)
        if not 1 <= len(title) <= _list.TITLE_CHARS:
            raise refuse(status.BAD_REQUEST, self.texts.title)
        thread = self._find(thread_id)
        try:
            runs.update_thread(thread.thread_id, {TITLE: title})
        except Failure as failure:
            raise self._refused(failure) from None

    def delete(self, thread_id: str) -> None:
        """Deletes a conversation. Cancels its active run first.

        Raises `not-found` with status 404 if the graph has no such thread; a failure with status
        409 if the thread is in use.
        """
        thread = self._find(thread_id)
        run = thread.active_run()
        if run is not None:
            runs.cancel_and_wait(run)
        try:
            runs.delete_thread_if_any(thread.thread_id)
        except Failure as failure:
            raise self._refused(failure) from None

    def answer(self, thread_id: str, request: Request) -> Ended:
        """Answers a pending question with the answer of an `AnswerRequest`.

        Waits until the run has ended or is interrupted again. Further questions stay pending, and
        the run is interrupted for them. Of several requests with an answer to one question, such as
        those of a double click, one resumes the run.

        Raises a failure with status 400 for an answer that does not fit its question, which remains
        pending; `not-found` with status 404 if the graph has no such thread; `conflict` with status
        409 if the question is not pending; `busy` with status 409 if other requests had active runs
        in all attempts.
        """
        body = self._body(request, AnswerRequest, self.texts.answer)

        # After a run for another question, this one is pending again.
        def is_over(thread: Thread) -> bool | None:
            has_question = any(question.id == body.id for question in thread.interrupts)
            is_pending = has_question and (thread.is_interrupted() or thread.is_running())
            return None if is_pending else True

        resume = Resume(thread_id).answer_to(body.id, body.answer)
        outcome = resume.resume_once(self.graph, is_over)
        if outcome.run is not None:
            return self._ended(outcome.run)
        if outcome.kind == "done":
            raise refuse(status.CONFLICT, self.texts.not_pending)
        if outcome.kind == "refused":
            log.debug(f"an answer on thread `{thread_id}` is refused: {outcome.failure}")
            raise refuse(status.BAD_REQUEST, self.texts.answer)
        # Any thread of the graph that is not interrupted is over.
        raise self._missing() if outcome.kind == "not_interrupted" else self._busy()

    def _body(self, request: Request, of: type[T], text: str) -> T:
        """Returns the body of a request as a type. A failure has a text for users."""
        try:
            return request.json(of)
        except Failure:
            raise refuse(status.BAD_REQUEST, text) from None

    def _format(self, request: Request, default: StreamFormat) -> StreamFormat:
        """Returns the format of a stream that a request names."""
        name = request.query("format")
        if name is None:
            return default
        if name not in FORMATS:
            raise refuse(status.BAD_REQUEST, self.texts.format)
        return FORMATS[name]

    def _retry(self, thread_id: str | None) -> RunRef:
        """Starts a run without a new message."""
        if thread_id is None:
            raise self._missing()
        thread = self._find(thread_id)
        # A question may be pending behind a reply that is the last message.
        if _pending(thread):
            raise refuse(status.CONFLICT, self.texts.waiting)
        if _stored.has_reply(self._messages(thread.state)):
            raise refuse(status.CONFLICT, self.texts.nothing_to_retry)
        return self._start(Start(self.graph, thread_id=thread.thread_id))

    def _start(self, start: Start) -> RunRef:
        start.reject_if_interrupted = True
        try:
            return start.start()
        except Failure as failure:
            log.debug(f"start a run: {failure}")
            if failure.code == codes.CONFLICT:
                if detail_of(failure, "reason") == "interrupted":
                    raise refuse(status.CONFLICT, self.texts.waiting) from None
                # The thread belongs to another graph.
                raise self._missing() from None
            if failure.code == codes.INVALID:
                raise refuse(status.BAD_REQUEST, self.texts.thread_id) from None
            raise self._refused(failure) from None

    def _refused(self, failure: Failure) -> Failure:
        """Returns the refusal for a thread that another operation uses or has deleted."""
        if failure.code == codes.BUSY:
            return self._busy()
        return self._missing() if failure.code == codes.NOT_FOUND else failure

    def _busy(self) -> Failure:
        return Failure(codes.BUSY, self.texts.busy).with_status(status.CONFLICT)

    def _missing(self) -> Failure:
        return refuse(status.NOT_FOUND, self.texts.missing)

    def _ended(self, run: EndedRun) -> Ended:
        last = _last_reply.read(self._messages(run.state))
        return Ended(run.run.thread_id, run.outcome, last.text, last.steps, self.texts)

    def _find(self, thread_id: str) -> Thread:
        """Returns the thread of a conversation. Threads of other graphs are not found."""
        thread = runs.find(self.graph, thread_id)
        if thread is None:
            raise self._missing()
        return thread

    def _messages(self, state: Any) -> Any:
        return _stored.field_of(state, self.agent.channel)

    def _hand_off(self, run: RunRef, format: StreamFormat) -> Response:
        hand_off = HandOff(run.thread_id, format, run.run_id).nodes(self.agent.model_node)
        if self.cancel_on_disconnect_ms is not None:
            hand_off.cancel_on_disconnect(self.cancel_on_disconnect_ms)
        return Response.hand_off_from(hand_off)


def _pending(thread: Thread) -> list[runs.Interrupt]:
    """Returns the interrupts of a conversation that wait for an answer.

    A run that failed or was cancelled may leave interrupts, which the next message gives up.
    """
    return thread.interrupts if thread.is_interrupted() else []
