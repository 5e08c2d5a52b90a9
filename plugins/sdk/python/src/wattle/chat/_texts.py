"""Texts of conversations for users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Texts:
    """Texts for users. An app can give its own, in the language of its users.

    >>> Texts(empty="Say something.").missing
    'the conversation does not exist or has expired'
    """

    ENGLISH: ClassVar[Texts]
    """The texts of a `Chat` that sets none."""

    malformed: str = "the body must be a JSON object with a text in `message`"
    """The body is not a `ChatRequest`; status 400."""
    empty: str = "the message is empty"
    """The message is empty; status 400."""
    thread_id: str = "`threadId` is invalid"
    """No thread can have the id; status 400."""
    format: str = "`format` must be `sse` or `ai-sdk`"
    """The format of the stream is unknown; status 400."""
    missing: str = "the conversation does not exist or has expired"
    """The app has no such conversation, or it has expired; status 404."""
    busy: str = "the reply to the previous message is not complete; try again later"
    """A run of the conversation is active; status 409."""
    waiting: str = "an operation of the conversation waits for an answer"
    """A question of the conversation is pending, and the request is a message or a retry; status
    409."""
    answer: str = "the answer does not fit the question"
    """The body is not an `AnswerRequest`, or the answer does not fit its question; status 400."""
    not_pending: str = "the question does not wait for an answer"
    """The question of an answer is not pending; status 409."""
    nothing_to_retry: str = "the last message has a reply"
    """The last message has a reply, so a retry has nothing to do; status 409."""
    too_long: str = "the message is too long; send it in several messages"
    """The message is too long; status 413."""
    title: str = "`title` must have 1 to 200 characters"
    """The title is missing, empty or longer than 200 characters; status 400."""
    list: str = "`limit`, `after` or `text` is invalid"
    """A parameter of a list is invalid; status 400."""
    cancelled: str = "the run was cancelled"
    """The run was cancelled before its reply; status 409."""
    failed: str = "the run failed; try again later"
    """The run failed; status 502. Only `Ended.into_response` uses the text."""
    unfinished: str = "this step was not completed"
    """Error of a tool call without a result, in the messages of a conversation."""


Texts.ENGLISH = Texts()
