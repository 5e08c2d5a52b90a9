"""Lists of conversations, and their titles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from wattle._whitespace import WHITESPACE
from wattle.chat._document import Document
from wattle.prompt import head
from wattle.runs import ThreadPage, ThreadSummary

DEFAULT_LIMIT = 50
"""Number of conversations in a page if the request has no limit."""

MAX_LIMIT = 200
"""Maximum number of conversations in a page."""

TITLE = "title"
"""Field of the metadata of a thread with the title of the conversation."""

TITLE_CHARS = 200
"""Maximum number of characters of a title."""


@dataclass
class ThreadEntry(Document):
    """A conversation in a list."""

    thread_id: str
    title: Annotated[str | None, "Null for a conversation without a title."]
    status: Annotated[str, "`running` during a run."]
    created_ms: Annotated[int, "Time of creation, in milliseconds since 1970."]
    updated_ms: Annotated[int, "Time of the last update, in milliseconds since 1970."]

    @classmethod
    def of(cls, thread: ThreadSummary) -> ThreadEntry:
        """Creates the entry of a thread."""
        title = thread.metadata.get(TITLE)
        return cls(
            thread.thread_id,
            title if isinstance(title, str) else None,
            thread.status,
            thread.created_ms,
            thread.updated_ms,
        )


@dataclass
class ThreadList:
    """A page of the list of conversations."""

    threads: Annotated[list[ThreadEntry], "The conversations, newest update first."]
    next: Annotated[
        str | None,
        "Value of `after` for the next page; null at the end of the list. A page may be short or "
        "empty although another one follows.",
    ]

    @classmethod
    def of(cls, page: ThreadPage) -> ThreadList:
        """Creates the page of a list of threads."""
        return cls([ThreadEntry.of(thread) for thread in page.threads], page.next)


@dataclass
class TitleRequest:
    """A new title of a conversation."""

    title: str


def title_of(message: str, chars: int) -> str:
    """Returns the title of a conversation that begins with a message."""
    line = message.partition("\n")[0].removesuffix("\r")
    return head(line, chars).rstrip(WHITESPACE)
