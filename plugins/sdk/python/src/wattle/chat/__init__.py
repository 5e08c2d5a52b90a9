"""Conversations as endpoints: messages, replies and streams.

A conversation is the messages of a thread, in a channel with the reducer `messages`, such as that
of the nodes of the plugin `std`. It needs no tables. `chat_endpoints` declares the common
endpoints. An app declares others itself, and `Chat` does their work:

>>> from wattle._registry import separate_plugin
>>> from wattle import Request, Response, handler
>>> from wattle.testing import FakeHost
>>> CHAT = Chat("notes", message_chars=4_000)
>>> with separate_plugin():
...     @handler("POST", "/api/chat", query={"format": str | None}, body=ChatRequest, events=dict)
...     def chat(request: Request) -> Response:
...         "Sends a message and streams the reply."
...         return CHAT.stream(request)
...     @handler("GET", "/api/threads/{id}", returns=ThreadDocument)
...     def thread(request: Request) -> Response:
...         "Responds with the messages of a conversation."
...         return Response.json(200, CHAT.show(request.param("id")))
>>> with FakeHost() as host:
...     response = chat(Request("POST", "/api/chat", body=b'{"message": "hi"}'))
>>> response.headers[0][0]
'x-thread-id'
>>> host.started[0].input
{'messages': [{'role': 'user', 'content': 'hi'}]}

A refused request is a failure with the status of the response and one of the `Texts` as its
message, which `web.respond` reports in the form of the app.

An app that stores conversations in tables of its own reads them from the log of the thread with an
`Agent`.
"""

from wattle.chat import ui
from wattle.chat._agent import Agent
from wattle.chat._chat import AnswerRequest, Chat, ChatRequest, ThreadDocument
from wattle.chat._ended import ChatError, Ended, Reply, Waiting
from wattle.chat._endpoints import chat_endpoints
from wattle.chat._list import ThreadList, TitleRequest
from wattle.chat._steps import Step, StepStatus
from wattle.chat._texts import Texts

__all__ = [
    "Agent",
    "AnswerRequest",
    "Chat",
    "ChatError",
    "ChatRequest",
    "Ended",
    "Reply",
    "Step",
    "StepStatus",
    "Texts",
    "ThreadDocument",
    "ThreadList",
    "TitleRequest",
    "Waiting",
    "chat_endpoints",
    "ui",
]
