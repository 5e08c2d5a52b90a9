"""Tests of the work of the endpoints of conversations."""

import json
import unittest
from collections.abc import Callable
from typing import Any

from wattle import Failure, Request, Response, StreamFormat, _json, _openapi, _schema, code
from wattle._registry import HandlerEntry, entry_of, separate_plugin
from wattle._signature import DefinitionError
from wattle.chat import Agent, Chat, Texts, chat_endpoints
from wattle.runs import EndedRun, Interrupt, Outcome, RunRef, Start, Thread
from wattle.testing import FakeHost
from wattle.web import HandOff

CHAT = Chat("notes", message_chars=10)
TEXTS = Texts.ENGLISH
HI = {"id": "u", "role": "user", "content": "hi"}
HELLO = {"id": "a", "role": "assistant", "content": "hello"}


def thread(id: str, status: str, messages: Any, **fields: Any) -> Thread:
    return Thread(id, fields.pop("graph", "notes"), status, {"messages": messages}, **fields)


def ended(outcome: Outcome) -> Callable[[RunRef], EndedRun]:
    return lambda run: EndedRun(run, outcome, {"messages": [HI, HELLO]})


def host() -> FakeHost:
    """A host with a conversation with a reply, two without, one with an active run, and a thread of
    another graph. Its runs are cancelled."""
    host = FakeHost().run_ends(ended(Outcome.cancelled()))
    for it in (
        thread("done", "idle", [HI, HELLO]),
        thread("failed", "error", [HI]),
        thread("empty", "idle", None),
        thread("running", "running", [HI, HELLO], run_id="run-7"),
        thread("foreign", "idle", [HI], graph="other"),
    ):
        host.thread(it)
    return host


def asking(id: str, status: str, messages: Any = (HI,), graph: str = "notes") -> Thread:
    """A conversation of a graph with the question `q` about a tool call."""
    question = Interrupt("q", "tools", {"tool": "pay"})
    return thread(id, status, list(messages), graph=graph, interrupts=[question])


def host_with_questions() -> FakeHost:
    """A host with conversations that have a question. `waiting` and `replied` wait for an answer;
    the last message of `replied` is a reply."""
    host = FakeHost().run_ends(ended(Outcome.completed()))
    for it in (
        asking("replied", "interrupted", (HI, HELLO)),
        asking("waiting", "interrupted"),
        asking("foreign", "interrupted", graph="other"),
        asking("failed", "error"),
        asking("cancelled", "idle"),
    ):
        host.thread(it)
    return host


def post(body: Any, **query: str) -> Request:
    pairs = list(query.items())
    return Request("POST", "/api/chat", query_params=pairs, body=json.dumps(body).encode())


def get(**query: str) -> Request:
    return Request("GET", "/api/threads", query_params=list(query.items()))


def plain(value: Any) -> Any:
    """Returns a document as clients receive it."""
    return _json.to_value("the document", value)


def raising(failure: Failure) -> Callable[[Any], None]:
    def script(_: Any) -> None:
        raise failure

    return script


def handed_off(response: Response) -> HandOff:
    assert isinstance(response.body, HandOff)
    return response.body


class Case(unittest.TestCase):
    def refusal(self, work: Callable[[], Any]) -> tuple[int | None, str]:
        """Returns status and text of a refusal."""
        with self.assertRaises(Failure) as raised:
            work()
        return raised.exception.status(), raised.exception.message


class Sending(Case):
    def test_requests_start_runs(self) -> None:
        said = {"messages": [{"role": "user", "content": "hi"}]}
        for body, thread_id, input in (
            ({"message": " hi\n"}, None, said),
            ({"message": "hi", "threadId": ""}, None, said),
            ({"message": "hi", "threadId": None}, None, said),
            ({"message": "hi", "threadId": "done"}, "done", said),
            ({"threadId": "failed", "retry": True}, "failed", {}),
        ):
            with self.subTest(body), host() as fake:
                self.assertEqual(CHAT.send(post(body)).run_id, "run-1")
                (started,) = fake.started
                found = (started.graph, started.input, started.thread_id)
                self.assertEqual(found, ("notes", input, thread_id))

    def test_refused_requests_start_no_run(self) -> None:
        def retry(thread: Any) -> Any:
            return {"threadId": thread, "retry": True}

        for body, status, text in (
            ("hi", 400, TEXTS.malformed),
            ({"message": 5}, 400, TEXTS.malformed),
            ({}, 400, TEXTS.empty),
            ({"message": " \n"}, 400, TEXTS.empty),
            ({"message": "長" * 11}, 413, TEXTS.too_long),
            (retry("done"), 409, TEXTS.nothing_to_retry),
            (retry("empty"), 409, TEXTS.nothing_to_retry),
            (retry("foreign"), 404, TEXTS.missing),
            (retry("nobody"), 404, TEXTS.missing),
            (retry(""), 404, TEXTS.missing),
            (retry(None), 404, TEXTS.missing),
        ):
            with self.subTest(body), host() as fake:
                found = self.refusal(lambda body=body: CHAT.send(post(body)))
                self.assertEqual((found, fake.started), ((status, text), []))
        with host():
            CHAT.send(post({"message": f" {'長' * 10} "}))

    def test_failures_of_starts_have_texts(self) -> None:
        for failed, status, text in (
            (code.BUSY, 409, TEXTS.busy),
            (code.NOT_FOUND, 404, TEXTS.missing),
            (code.CONFLICT, 404, TEXTS.missing),
            (code.INVALID, 400, TEXTS.thread_id),
            (code.LIMIT, None, "why"),
        ):
            with host().starts(raising(Failure(failed, "why"))):
                found = self.refusal(lambda: CHAT.send(post({"message": "hi"})))
            self.assertEqual(found, (status, text), failed)

    def test_messages_and_retries_wait_for_answers(self) -> None:
        for id, is_waiting in (
            ("waiting", True),
            ("replied", True),
            ("failed", False),
            ("cancelled", False),
        ):
            for body in ({"message": "hi"}, {"retry": True}):
                with self.subTest(f"{id} {body}"), host_with_questions() as fake:
                    request = post({**body, "threadId": id})
                    if is_waiting:
                        found = self.refusal(lambda request=request: CHAT.send(request))
                        self.assertEqual(found, (409, TEXTS.waiting))
                    else:
                        CHAT.send(request)
                    self.assertEqual(len(fake.started), int(not is_waiting))

    def test_the_question_of_a_run_that_ends_meanwhile_is_not_given_up(self) -> None:
        def reject(start: Start) -> None:
            self.assertTrue(start.reject_if_interrupted)
            raise Failure.conflict("an answer is missing", details={"reason": "interrupted"})

        for body in ({"message": "hi"}, {"threadId": "failed", "retry": True}):
            with host().starts(reject):
                found = self.refusal(lambda body=body: CHAT.send(post(body)))
            self.assertEqual(found, (409, TEXTS.waiting))

    def test_new_conversations_have_titles(self) -> None:
        chat = Chat("notes", title_chars=6)

        def started(body: Any, chat: Chat = chat) -> Any:
            with host() as fake:
                chat.send(post(body))
            return fake.started[0].metadata

        for message, title in (
            ("hi", "hi"),
            (" Green tea\nand more", "Green"),
            ("tea\r\nx", "tea"),
            ("线线\n", "线线"),
        ):
            self.assertEqual(started({"message": message}), {"title": title})
        self.assertEqual(started({"message": "hi", "threadId": "own"}), {"title": "hi"})
        self.assertIsNone(started({"message": "hi", "threadId": "done"}))
        self.assertIsNone(started({"message": "hi"}, CHAT))


class Streams(Case):
    def test_a_stream_has_the_requested_format(self) -> None:
        for query, expected in (
            ({}, StreamFormat.SSE),
            ({"format": "sse"}, StreamFormat.SSE),
            ({"format": "ai-sdk"}, StreamFormat.AI_SDK),
        ):
            with host():
                response = CHAT.stream(post({"message": "hi"}, **query))
            self.assertEqual(response.headers, [("x-thread-id", "thread-1")])
            hand_off = HandOff("thread-1", expected, "run-1").nodes("agent")
            self.assertEqual(handed_off(response), hand_off)
        with host() as fake:
            request = post({"message": "hi"}, format="morse")
            found = self.refusal(lambda: CHAT.stream(request))
            self.assertEqual((found, fake.started), ((400, TEXTS.format), []))
            chat = Chat("notes", Agent(model_node="writer"), cancel_on_disconnect_ms=5_000)
            extra = handed_off(chat.stream(post({"message": "hi"}))).extra
        expected_extra = {"nodes": ["writer"], "on_disconnect": "cancel", "grace_ms": 5_000}
        self.assertEqual(extra, expected_extra)

    def test_the_stream_of_the_active_run_is_joined(self) -> None:
        with host():
            for query, expected in (
                ({}, StreamFormat.AI_SDK),
                ({"format": "ai-sdk"}, StreamFormat.AI_SDK),
                ({"format": "sse"}, StreamFormat.SSE),
            ):
                hand_off = HandOff("running", expected, "run-7").nodes("agent")
                self.assertEqual(handed_off(CHAT.join("running", get(**query))), hand_off)
            self.assertEqual(CHAT.join("done", get()), Response.empty(204))
            found = self.refusal(lambda: CHAT.join("running", get(format="morse")))
        self.assertEqual(found, (400, TEXTS.format))


class Conversations(Case):
    def test_they_are_shown_without_messages_of_the_active_run(self) -> None:
        with host():
            for id, status, count in (
                ("done", "idle", 2),
                ("failed", "error", 1),
                ("running", "running", 1),
            ):
                shown = plain(CHAT.show(id))
                self.assertEqual((shown["threadId"], shown["status"]), (id, status))
                self.assertEqual(len(shown["messages"]), count)
            self.assertEqual(shown["messages"][0], {**user("hi"), "id": "u"})
            other = Chat("notes", Agent(channel="other"))
            self.assertEqual(plain(other.show("done"))["messages"], [])

    def test_pending_questions_are_shown(self) -> None:
        with host_with_questions():
            questions = [{"id": "q", "payload": {"tool": "pay"}}]
            self.assertEqual(plain(CHAT.show("waiting"))["questions"], questions)
            for id in ("failed", "cancelled"):
                self.assertNotIn("questions", plain(CHAT.show(id)))

    def test_only_an_active_run_is_cancelled(self) -> None:
        with host() as fake:
            for id in ("running", "done"):
                self.assertEqual(CHAT.cancel(id).thread_id, id)
        self.assertEqual(fake.cancelled, [RunRef("running", "run-7")])

    def test_they_are_listed_in_pages(self) -> None:
        def ids(**query: str) -> list[str]:
            return [it["threadId"] for it in plain(CHAT.list(get(**query)))["threads"]]

        with host():
            whole = plain(CHAT.list(get()))
            entry = {"threadId": "running", "title": None, "status": "running"}
            self.assertEqual(whole["threads"][3], {**entry, "createdMs": 0, "updatedMs": 0})
            self.assertEqual(ids(), ["done", "empty", "failed", "running"])
            self.assertIsNone(whole["next"])
            first = CHAT.list(get(limit="3"))
            self.assertEqual(len(first.threads), 3)
            self.assertEqual(ids(limit="3", after=first.next or ""), ["running"])
            self.assertEqual(ids(text="FAIL"), ["failed"])
            self.assertEqual(ids(offset="x"), ids())
            for name in ("after", "limit"):
                found = self.refusal(lambda name=name: CHAT.list(get(**{name: "x"})))
                self.assertEqual(found, (400, TEXTS.list))

    def test_they_are_renamed(self) -> None:
        with host() as fake:
            for title, shown in ((" Tea\n", "Tea"), ("長" * 200, "長" * 200)):
                CHAT.rename("done", post({"title": title}))
                first = CHAT.list(get()).threads[0]
                self.assertEqual((first.thread_id, first.title), ("done", shown))
            for body in ({}, {"title": 7}, {"title": " "}, {"title": "長" * 201}):
                found = self.refusal(lambda body=body: CHAT.rename("done", post(body)))
                self.assertEqual(found, (400, TEXTS.title))
            for id in ("running", "failed"):
                CHAT.delete(id)
            self.assertEqual(len(CHAT.list(get()).threads), 2)
        self.assertEqual(fake.cancelled, [RunRef("running", "run-7")])

    def test_threads_of_other_graphs_are_not_found(self) -> None:
        for id in ("nobody", "foreign", ""):
            for work in (
                lambda id: CHAT.rename(id, post({"title": "Tea"})),
                CHAT.delete,
                CHAT.show,
                lambda id: CHAT.join(id, get()),
                CHAT.cancel,
            ):
                with host():
                    found = self.refusal(lambda work=work, id=id: work(id))
                self.assertEqual(found, (404, TEXTS.missing))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


class Answers(Case):
    def test_a_pending_question_is_answered(self) -> None:
        decision = {"decision": "approve"}
        with host_with_questions() as fake:
            response = CHAT.answer("waiting", post({"id": "q", "answer": decision}))
        body = response.into_response().json_body()
        self.assertEqual(body["reply"], "hello")
        (resumed,) = fake.resumed
        self.assertEqual((resumed.thread_id, resumed.answers), ("waiting", [("q", decision)]))

    def test_refused_answers_resume_no_run(self) -> None:
        def answer(id: str) -> Any:
            return {"id": id, "answer": True}

        for id, body, status, text in (
            ("waiting", [], 400, TEXTS.answer),
            ("waiting", {"id": "q"}, 400, TEXTS.answer),
            ("waiting", {"answer": True}, 400, TEXTS.answer),
            ("waiting", answer("other"), 409, TEXTS.not_pending),
            ("waiting", answer(""), 409, TEXTS.not_pending),
            ("failed", answer("q"), 409, TEXTS.not_pending),
            ("cancelled", answer("q"), 409, TEXTS.not_pending),
            ("foreign", answer("q"), 404, TEXTS.missing),
            ("nobody", answer("q"), 404, TEXTS.missing),
        ):
            with self.subTest(f"{id} {body}"), host_with_questions() as fake:
                found = self.refusal(lambda id=id, body=body: CHAT.answer(id, post(body)))
                self.assertEqual((found, fake.resumed), ((status, text), []))

    def test_failures_of_answers_have_texts(self) -> None:
        for failed, status, text in (
            (code.INVALID, 400, TEXTS.answer),
            (code.BUSY, 409, TEXTS.busy),
            (code.NOT_FOUND, 404, TEXTS.missing),
            (code.LIMIT, None, "why"),
        ):
            with host_with_questions().resumes(raising(Failure(failed, "why"))):
                request = post({"id": "q", "answer": True})
                found = self.refusal(lambda request=request: CHAT.answer("waiting", request))
            self.assertEqual(found, (status, text), failed)


class Outcomes(Case):
    def test_outcomes_have_responses(self) -> None:
        steps = [{"type": "model", "content": "hello", "toolCalls": []}]
        base = {"threadId": "thread-1", "steps": steps}
        payload, schema = {"kind": "tool_approval"}, {"type": "object"}
        questions = [{"id": "q", "payload": payload, "responseSchema": schema}]
        question = Interrupt("q", "tools", payload, response_schema=schema)
        for outcome, status, body in (
            (Outcome.completed(), 200, {**base, "reply": "hello"}),
            (
                Outcome.interrupted(question),
                202,
                {**base, "reply": "hello", "questions": questions},
            ),
            (Outcome.failed(Failure.timeout("late")), 502, {**base, "error": "timeout"}),
            (Outcome.cancelled(), 409, {**base, "error": TEXTS.cancelled}),
            (Outcome("lost"), 409, {**base, "error": TEXTS.cancelled}),
        ):
            with self.subTest(outcome.kind), host().run_ends(ended(outcome)):
                run = CHAT.send(post({"message": "hi"}))
                response = CHAT.wait(run).respond(lambda failure: (502, failure.code))
                self.assertEqual((response.status, response.json_body()), (status, body))

    def test_steps_are_those_since_the_last_message_of_the_user(self) -> None:
        call = {"id": "a", "name": "save", "arguments": {"amount": 20}}
        messages = [
            HI,
            HELLO,
            {"role": "user", "content": "a taxi, 20"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [call, {"id": "b", "name": "fly", "extra": {"signature": "s"}}],
            },
            {"role": "tool", "tool_call_id": "a", "name": "save", "content": "{}",
             "status": "success", "structured": {"status": "success"}},
            {"role": "tool", "tool_call_id": "b", "name": "fly",
             "content": [{"text": "no wings"}], "status": "error"},
            {"role": "assistant", "content": "saved"},
        ]  # fmt: skip
        state = {"messages": messages}
        with host().run_ends(lambda run: EndedRun(run, Outcome.completed(), state)):
            found = CHAT.wait(CHAT.send(post({"message": "hi"}))).into_response().json_body()
        fly = {"id": "b", "name": "fly", "arguments": None}
        expected = [
            {"type": "model", "content": "", "toolCalls": [call, fly]},
            {"type": "tool", "callId": "a", "tool": "save", "arguments": {"amount": 20},
             "status": "success", "result": {"status": "success"}},
            {"type": "tool", "callId": "b", "tool": "fly", "arguments": None,
             "status": "error", "result": "no wings"},
            {"type": "model", "content": "saved", "toolCalls": []},
        ]  # fmt: skip
        self.assertEqual((found["reply"], found["steps"]), ("saved", expected))

    def test_invalid_conversations_have_no_reply(self) -> None:
        for channel in (None, [], [1, {"role": 2}]):
            state = {"messages": channel}
            with host().run_ends(lambda run, state=state: EndedRun(run, Outcome("x"), state)):
                found = CHAT.wait(CHAT.send(post({"message": "hi"})))
            self.assertEqual((found.reply, found.steps), ("", []))


ENDPOINTS = {
    "send": ("POST", "/api/chat"),
    "stream": ("POST", "/api/chat/stream"),
    "list": ("GET", "/api/threads"),
    "show": ("GET", "/api/threads/{id}"),
    "rename": ("PATCH", "/api/threads/{id}"),
    "delete": ("DELETE", "/api/threads/{id}"),
    "join": ("GET", "/api/threads/{id}/stream"),
    "cancel": ("POST", "/api/threads/{id}/cancel"),
    "answer": ("POST", "/api/threads/{id}/answers"),
}


class Endpoints(Case):
    def setUp(self) -> None:
        self.plugin = self.enterContext(separate_plugin())
        self.handlers = chat_endpoints(Chat("notes"), "/api")

    def call(self, host: FakeHost, name: str, id: str, body: Any) -> tuple[int, Any]:
        """Sends a request to an endpoint. Returns the status and the body of the response, which no
        cache stores."""
        request = Request(*ENDPOINTS[name], params=[("id", id)], body=json.dumps(body).encode())
        with host:
            response = self.handlers[name](request)
        self.assertIn(("cache-control", "no-store"), response.headers)
        has_body = isinstance(response.body, bytes)
        return response.status, response.json_body() if has_body else None

    def test_they_are_below_the_path_and_have_a_summary(self) -> None:
        self.assertEqual(list(self.plugin.handlers), list(ENDPOINTS.values()))
        entries: list[HandlerEntry] = [
            entry_of(handler, HandlerEntry) for handler in self.handlers.values()
        ]
        document = _openapi.document("notes", [(entry.endpoint, entry.doc) for entry in entries])
        for method, path in ENDPOINTS.values():
            operation = document["paths"][path][method.lower()]
            self.assertTrue(operation["summary"].endswith("."), path)
            self.assertIn("default", operation["responses"], path)
        schemas = document["components"]["schemas"]
        self.assertEqual(schemas["ThreadDocument"]["required"], ["threadId", "status", "messages"])
        self.assertEqual(schemas["ChatError"]["required"], ["error"])
        parts = schemas["UiMessage"]["properties"]["parts"]
        self.assertEqual(parts["items"]["required"], ["type"])

    def test_they_do_the_work_of_the_conversations(self) -> None:
        for name, id, body, status in (
            ("send", "", {"message": "hi"}, 200),
            ("stream", "", {"message": "hi"}, 200),
            ("list", "", None, 200),
            ("show", "done", None, 200),
            ("rename", "done", {"title": "Tea"}, 204),
            ("delete", "done", None, 204),
            ("join", "done", None, 204),
            ("cancel", "done", None, 200),
            ("answer", "waiting", {"id": "q", "answer": True}, 200),
        ):
            fake = host().thread(asking("waiting", "interrupted"))
            fake.run_ends(ended(Outcome.completed()))
            self.assertEqual(self.call(fake, name, id, body)[0], status, name)

    def test_refusals_and_failed_runs_have_a_text_for_users(self) -> None:
        fake = host_with_questions().run_ends(ended(Outcome.failed(Failure.timeout("late"))))
        body = {"message": "hi", "title": "Tea", "id": "q", "answer": True}
        for name, (_, path) in ENDPOINTS.items():
            if "{id}" in path:
                found = self.call(fake, name, "nobody", body)
                self.assertEqual(found, (404, {"error": TEXTS.missing}), name)
        for name in ("send", "answer"):
            status, found_body = self.call(fake, name, "waiting", body)
            self.assertEqual((status, found_body["error"]), (502, TEXTS.failed), name)

    def test_they_make_no_codec_when_they_are_called(self) -> None:
        made = (_schema._codec.cache_info().misses, _schema._encoder.cache_info().misses)
        fake = host().thread(asking("waiting", "interrupted"))
        fake.run_ends(ended(Outcome.completed()))
        body = {"message": "hi", "title": "Tea", "id": "q", "answer": True}
        for name in ENDPOINTS:
            self.call(fake, name, "waiting" if name == "answer" else "done", body)
        found = (_schema._codec.cache_info().misses, _schema._encoder.cache_info().misses)
        self.assertEqual(found, made)

    def test_an_app_names_those_that_it_offers(self) -> None:
        with separate_plugin() as plugin:
            self.assertEqual(list(chat_endpoints(CHAT, "/x", "stream")), ["stream"])
            self.assertEqual(list(plugin.handlers), [("POST", "/x/chat/stream")])
            with self.assertRaisesRegex(DefinitionError, "`say` is no endpoint of a chat"):
                chat_endpoints(CHAT, "/x", "say")


if __name__ == "__main__":
    unittest.main()
