"""Tests of the exports and imports of a component, with bindings made from the contract."""

import contextlib
import io
import json
import linecache
import logging
import unittest
from dataclasses import astuple, dataclass
from typing import Any
from unittest import mock

from tests import contract

contract.install()

from componentize_py_types import Err, Ok
from wit_world.exports import node as raw_node
from wit_world.exports import tool as raw_tool
from wit_world.exports import web as raw_web
from wit_world.imports import blob as raw_blob
from wit_world.imports import clock as raw_clock
from wit_world.imports import http as raw_http
from wit_world.imports import llm as raw_llm
from wit_world.imports import memory as raw_memory
from wit_world.imports import runs as raw_runs
from wit_world.imports import sql as raw_sql
from wit_world.imports import types as raw

from wattle import (
    Context,
    Failure,
    Image,
    Message,
    Outcome,
    Reads,
    Request,
    Response,
    StreamFormat,
    ToolContext,
    ToolOutput,
    _host,
    blob,
    clock,
    emit,
    handler,
    http,
    interrupt,
    llm,
    log,
    memory,
    node,
    random,
    reducer,
    runs,
    settings,
    sql,
    tenants,
    tool,
    tools,
)
from wattle._export import _answer, _start
from wattle._export.node import Node
from wattle._export.reducer import Reducer
from wattle._export.tool import Tool
from wattle._export.web import Web
from wattle._registry import separate_plugin
from wattle.message import OtherPart, Reasoning, ToolCall, ToolResult
from wattle.web import HandOff, OtherBody


class Case(unittest.TestCase):
    """Each test declares entries of its own, and has a host of its own."""

    def setUp(self) -> None:
        self.plugin = self.enterContext(separate_plugin())
        self.enterContext(mock.patch.dict(_host._of_component))
        _start.provide(list(_host.INTERFACES))
        self.enterContext(mock.patch.dict(contract.HOST, clear=True))
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def host(self, name: str, answer: Any = None) -> None:
        """Sets the answer of a host function, and records its calls."""

        def call(*arguments: Any) -> Any:
            self.calls.append((name, arguments))
            if isinstance(answer, Err):
                raise answer
            return answer

        contract.HOST[name] = call


def task(node: str, **changes: Any) -> Any:
    """Returns the context of a task."""
    fields = ("graph", "t", "r", "k", 1, 2, 3, None, "null", [])
    context = raw_node.TaskContext(node, *fields)
    for name, value in changes.items():
        setattr(context, name, value)
    return context


class Exports(Case):
    def test_nodes_are_described_and_run(self) -> None:
        @dataclass
        class Config:
            times: int = 1

        @node(config=Config, reads=Reads(conversation="text"))
        def repeat(ctx: Context, text: str) -> Outcome[dict[str, str]]:
            """Repeats."""
            updates = {"text": text * ctx.config(Config).times, "tenant": ctx.tenant}
            return Outcome(updates).overwrite("text").goto("next").send("other", [1])

        (info,) = Node().describe()
        self.assertEqual((info.name, info.doc), ("repeat", "Repeats."))
        self.assertEqual(json.loads(info.input_schema)["required"], ["text"])
        self.assertEqual([key for key, _ in info.extra], ["config-schema", "reads"])
        self.assertEqual(json.loads(info.extra[1][1]), {"conversation": {"channel": "text"}})
        extra = [("config", '{"times": 2}')]
        outcome = Node().run(task("repeat", extra=extra, tenant="a"), '{"text": "a"}')
        updates = [astuple(it) for it in outcome.updates]
        self.assertEqual(updates, [("text", '"aa"', True), ("tenant", '"a"', False)])
        self.assertEqual((outcome.goto, outcome.sends[0].input), (["next"], "[1]"))

    def test_failures_and_exceptions_are_failures_of_the_host(self) -> None:
        @node
        def fails(ctx: Context, how: str) -> None:
            if how == "failure":
                raise Failure("no-rate", "none", retryable=True, details={"a": {1}})
            if how == "exit":
                raise SystemExit(3)
            return {}[how]

        def failure(name: str, document: str) -> Any:
            with self.assertRaises(Err) as raised:
                Node().run(task(name), document)
            return raised.exception.value

        found = failure("fails", '{"how": "failure"}')
        self.assertEqual((found.code, found.message, found.retryable), ("no-rate", "none", True))
        self.assertEqual(json.loads(found.details), {"a": [1]})
        found = failure("fails", '{"how": "x"}')
        self.assertEqual((found.code, found.retryable), ("internal", False))
        self.assertRegex(found.message, r"^KeyError: 'x' \(.*test_component\.py:\d+\)$")
        details = json.loads(found.details)
        self.assertEqual(details["exception"], "KeyError")
        self.assertEqual(details["traceback"][0], "Traceback (most recent call last):")
        self.assertIn("return {}[how]", "\n".join(details["traceback"]))
        self.assertNotIn("_export", "\n".join(details["traceback"]))
        self.assertRegex(failure("fails", '{"how": "exit"}').message, "SystemExit: 3")
        self.assertEqual(failure("fails", "{").code, "invalid")
        self.assertEqual(failure("other", "{}").code, "not-found")

    def test_details_that_are_no_json_are_text(self) -> None:
        @node
        def fails() -> None:
            raise Failure("a\ud800", "b\ud800", details=object)

        with self.assertRaises(Err) as raised:
            Node().run(task("fails"), "{}")
        found = raised.exception.value
        self.assertEqual((found.code, found.message), ("a?", "b?"))
        self.assertIn("object", json.loads(found.details))

    def test_tools_are_listed_and_called(self) -> None:
        @tool(read_only=True)
        def look(context: ToolContext, query: str) -> ToolOutput:
            """Looks."""
            output = ToolOutput.json({"query": query, "seen": context.state()})
            return output.with_part(Image.url("u", "image/png")).with_update("a", 1)

        @tool
        def act() -> str:
            return "done"

        first, second = Tool().list()
        self.assertEqual((first.name, first.description), ("look", "Looks."))
        self.assertEqual(first.extra, [("hints", '{"read_only":true,"idempotent":false}')])
        self.assertEqual(second.extra, [])
        context = raw_tool.CallContext("look", "c", None, None, None, [], [("state", '{"n": 1}')])
        output = Tool().call(context, '{"query": "a"}')
        self.assertEqual(output.structured, '{"query":"a","seen":{"n":1}}')
        image = raw.Image(raw.ImageSource_Url("u"), "image/png", [])
        self.assertEqual(output.content, [raw.Part_Text(output.structured), raw.Part_Image(image)])
        self.assertEqual(output.updates, [raw.Update("a", "1", False)])
        context.tool = "none"
        with self.assertRaises(Err):
            Tool().call(context, "{}")

    def test_reducers_are_listed_and_called(self) -> None:
        @reducer
        def total(current: int | None, updates: list[int]) -> int:
            """Adds up."""
            return (current or 0) + sum(updates)

        (info,) = Reducer().reducers()
        self.assertEqual((info.name, info.doc, info.extra), ("total", "Adds up.", []))
        self.assertEqual(Reducer().reduce("total", None, ["1", "2"]), "3")
        with self.assertRaises(Err):
            Reducer().reduce("none", None, [])

    def test_endpoints_are_listed_and_handle_requests(self) -> None:
        bodies: dict[str, Response] = {
            "json": Response.json(201, [1]),
            "empty": Response.empty(204),
            "blob": Response.blob(blob.BlobRef("blob:1")),
            "other": Response(200, body=OtherBody({"a": 1})),
            "ag-ui": Response.hand_off("t", StreamFormat.AG_UI),
            "own": Response.hand_off_from(HandOff("t", StreamFormat.custom("own"), "r", 7)),
        }

        @handler("GET", "/{how}")
        def show(request: Request) -> Response:
            """Shows."""
            return bodies[request.param("how")]

        (route,) = Web().routes()
        self.assertEqual((route.method, route.path), ("GET", "/{how}"))
        self.assertEqual(json.loads(route.extra[0][1])["operation"]["summary"], "Shows.")

        def handle(how: str) -> Any:
            request = raw_web.Request(
                "GET", f"/{how}", "/{how}", [("how", how)], [], [], b"", None, []
            )
            return Web().handle(request)

        self.assertEqual((handle("json").status, handle("json").body.value), (201, b"[1]"))
        self.assertEqual(handle("empty").body, raw_web.Body_Empty())
        self.assertEqual(handle("blob").body, raw_web.Body_Blob("blob:1"))
        self.assertEqual(handle("other").body, raw_web.Body_Other('{"a":1}'))
        hand_off = raw_web.HandOff("t", None, raw_web.StreamFormat_AgUi(), None, [])
        self.assertEqual(handle("ag-ui").body, raw_web.Body_HandOff(hand_off))
        self.assertEqual(handle("own").body.value.format, raw_web.StreamFormat_Custom("own"))
        with self.assertRaises(Err):
            Web().handle(raw_web.Request("PUT", "/", "/", [], [], [], b"", None, []))


class Imports(Case):
    def test_every_function_of_the_contract_is_called(self) -> None:
        """Each function of the contract has a call, and raises the failure of the host."""
        calls = {
            "blob.put": lambda: blob.put(b"", "text/plain"),
            "blob.get": lambda: blob.get(blob.BlobRef("blob:1")),
            "blob.stat": lambda: blob.stat(blob.BlobRef("blob:1")),
            "blob.link": lambda: blob.link(blob.BlobRef("blob:1")),
            "clock.to-zone": lambda: clock.to_zone(0),
            "clock.from-zone": lambda: clock.from_zone(clock.Civil(1970, 1, 1)),
            "emit.custom": lambda: emit.custom("a", 1),
            "emit.progress": lambda: emit.progress("a"),
            "http.send": lambda: http.Request.get("https://a").send(),
            "interrupt.ask": lambda: interrupt.ask(1),
            "llm.complete": lambda: llm.Request("a").complete(),
            "llm.stream": lambda: llm.Request("a").stream(),
            "llm.generate-images": lambda: llm.generate_images(llm.ImageRequest("a", "b")),
            "llm.route": lambda: llm.route("a"),
            "memory.get": lambda: memory.get(["a"], "b"),
            "memory.put": lambda: memory.put(["a"], "b", 1),
            "memory.put-with": lambda: memory.put_while_read(["a"], "b", 1, 2),
            "memory.delete": lambda: memory.delete(["a"], "b"),
            "memory.search": lambda: memory.Search(["a"]).run(),
            "memory.list-namespaces": lambda: memory.list_namespaces(["a"], limit=1),
            "runs.start": lambda: runs.Start("a").start(),
            "runs.resume": lambda: runs.Resume("a").answer(1).resume(),
            "runs.wait": lambda: runs.wait(runs.RunRef("a", "b")),
            "runs.cancel": lambda: runs.cancel(runs.RunRef("a", "b")),
            "runs.thread": lambda: runs.thread("a"),
            "runs.delete-thread": lambda: runs.delete_thread("a"),
            "runs.threads": lambda: runs.ThreadSearch().run(),
            "runs.update-thread": lambda: runs.update_thread("a", {}),
            "runs.events": lambda: runs.events("a", 0, 1),
            "sql.query": lambda: sql.database("a").query("b"),
            "sql.execute": lambda: sql.database("a").execute("b"),
            "sql.begin": lambda: sql.database("a").begin(),
            "sql.dialect": lambda: sql.database("a").dialect(),
            "tenants.set-route": lambda: tenants.set_route("a", {}),
            "tenants.get-route": lambda: tenants.get_route("a"),
            "tenants.remove-route": lambda: tenants.remove_route("a"),
            "tools.list": tools.list,
            "tools.call": lambda: tools.Call("a", 1).call(),
        }
        infallible = {
            "clock.now": (7, clock.now_ms),
            "clock.monotonic": (7, clock.monotonic_ns),
            "clock.time-zone": ("UTC", clock.time_zone),
            "http.send-all": ([], lambda: http.send_all([])),
            "llm.complete-all": ([], lambda: llm.complete_all([])),
            "log.write": (None, lambda: log.info("a")),
            "random.bytes": (b"a", lambda: random.bytes(1)),
            "random.u64": (7, random.u64),
            "settings.get": (None, lambda: settings.get("a")),
            "settings.all": ("{}", settings.all),
            "tools.call-all": ([], lambda: tools.call_all([])),
        }
        self.assertEqual({*calls, *infallible}, set(contract.names()))
        for name, call in calls.items():
            self.host(name, contract.failure("denied", name, '{"n": 1}'))
            with self.subTest(name), self.assertRaises(Failure) as raised:
                call()
            failure = raised.exception
            self.assertEqual(
                (failure.code, failure.message, failure.details), ("denied", name, {"n": 1})
            )
        for name, (answer, call) in infallible.items():
            self.host(name, answer)
            with self.subTest(name):
                call()
                self.assertEqual(self.calls[-1][0], name)

    def test_a_model_call_is_converted(self) -> None:
        usage = raw_llm.Usage(1, 2, None, None, [])
        call = raw.ToolCall("c", "add", '{"a": 1}', [])
        parts = [raw.Part_Text("so"), raw.Part_ToolCall(call), raw.Part_Reasoning("hm")]
        parts.append(raw.Part_Other('{"x": 1}'))
        reason = raw_llm.FinishReason_ToolCalls()
        completion = raw_llm.Completion(parts, '{"k": 1}', reason, usage, "m", [("id", '"i"')])
        self.host("llm.complete", completion)
        image = Image.blob(blob.BlobRef("blob:1"), "image/png")
        request = llm.Request("chat", candidate=1, repair=False, timeout_ms=5, extra={"a": 1})
        request.tool_choice = llm.ToolChoice.tool("add")
        request.system("s").user("u").image(image)
        request.message(
            Message("odd", [ToolResult("c", "3", True), Reasoning("r"), OtherPart([1])])
        )
        request.tool(llm.ToolDefinition("add", "Adds.", {})).schema_value("v", {"type": "object"})
        found = request.complete()
        self.assertEqual((found.text(), found.finish_reason, found.id()), ("so", "tool-calls", "i"))
        self.assertEqual((found.structured, found.usage.output_tokens), ({"k": 1}, 2))
        expected = [ToolCall("c", "add", {"a": 1}), Reasoning("hm"), OtherPart({"x": 1})]
        self.assertEqual(found.parts[1:], expected)
        ((_, (sent,)),) = self.calls
        extra = {"a": "1", "candidate": "1", "timeout_ms": "5", "repair": "false"}
        self.assertEqual(dict(sent.extra), extra)
        self.assertEqual(sent.tool_choice, raw_llm.ToolChoice_Tool("add"))
        self.assertEqual(sent.response_schema, raw_llm.ResponseSchema("v", '{"type":"object"}'))
        roles = [raw.Role_System(), raw.Role_User(), raw.Role_Other("odd")]
        self.assertEqual([it.role for it in sent.messages], roles)
        source = raw.ImageSource_Blob("blob:1")
        picture = raw.Part_Image(raw.Image(source, "image/png", []))
        self.assertEqual(sent.messages[1].parts, [raw.Part_Text("u"), picture])
        result = raw.Part_ToolResult(raw.ToolResult("c", "3", True, []))
        parts = [result, raw.Part_Reasoning("r"), raw.Part_Other("[1]")]
        self.assertEqual(sent.messages[2].parts, parts)
        for choice, expected in (
            (llm.ToolChoice.AUTO, raw_llm.ToolChoice_Auto()),
            (llm.ToolChoice.NONE, raw_llm.ToolChoice_None_()),
        ):
            llm.Request("chat", tool_choice=choice).complete()
            self.assertEqual(self.calls[-1][1][0].tool_choice, expected)

    def test_a_stream_is_read_and_dropped(self) -> None:
        delta = raw_llm.StreamEvent_ToolCallDelta((0, "add", "{"))
        restart = raw_llm.StreamEvent_Other('{"kind": "restart"}')
        batches = [[raw_llm.StreamEvent_Text("a"), delta], [restart], []]
        self.host("llm.stream", raw_llm.CompletionStream())
        self.host("llm.completion-stream.drop")
        contract.HOST["llm.completion-stream.next"] = lambda _: batches.pop(0)
        with llm.Request("chat").stream() as stream:
            kinds = [event.kind for event in stream]
        self.assertEqual(kinds, ["text", "tool_call_delta", "restart"])
        self.assertEqual(self.calls[-1][0], "llm.completion-stream.drop")

    def test_several_calls_return_results(self) -> None:
        response = raw_http.Response(200, [], b"a", "u", [])
        self.host("http.send-all", [Ok(response), contract.failure("denied")])
        requests = [
            http.Request.get("https://a", delay_ms=5),
            http.Request.post("https://b", body=b"x"),
            http.Request.post("https://b", body=blob.BlobRef("blob:1")),
        ]
        first, second = http.send_all(requests)
        self.assertEqual(first, http.Response(200, b"a", [], "u"))
        assert isinstance(second, Failure)
        self.assertEqual(second.code, "denied")
        ((_, (sent,)),) = self.calls
        self.assertEqual(sent[0].extra, [("delay_ms", "5")])
        bodies = [raw_http.Body_Empty(), raw_http.Body_Bytes(b"x"), raw_http.Body_Blob("blob:1")]
        self.assertEqual([it.body for it in sent], bodies)

    def test_values_of_databases_are_converted(self) -> None:
        values = [
            raw_sql.Value_Null(),
            raw_sql.Value_Integer(7),
            raw_sql.Value_Json('{"a": 1}'),
            raw_sql.Value_Json('"text"'),
            raw_sql.Value_Other("1.5"),
            raw_sql.Value_Bytes(b"x"),
        ]
        columns = [raw_sql.Column(str(index), "") for index in range(len(values))]
        self.host("sql.query", raw_sql.Rows(columns, [values], False))
        parameters = [None, True, 7, 0.5, "a", b"x", [1], sql.Json("a"), sql.Other("1.5")]
        (row,) = sql.database("a").query("b", parameters)
        found = [row[str(index)] for index in range(len(values))]
        self.assertEqual(found, [None, 7, {"a": 1}, "text", "1.5", b"x"])
        sent = self.calls[0][1][2]
        names = [type(it).__name__.removeprefix("Value_") for it in sent]
        kinds = ["Null", "Boolean", "Integer", "Real", "Text", "Bytes", "Json", "Json", "Other"]
        self.assertEqual(names, kinds)
        with self.assertRaisesRegex(Failure, "no integer of 64 bits"):
            sql.database("a").query("b", [1 << 63])

    def test_a_transaction_is_dropped(self) -> None:
        rows = raw_sql.Rows([], [], False)
        self.host("sql.begin", raw_sql.Transaction())
        self.host("sql.transaction.execute", raw_sql.Executed(2, rows))
        self.host("sql.transaction.commit")
        self.host("sql.transaction.drop")
        with sql.database("a").begin() as transaction:
            self.assertEqual(transaction.execute("b").rows_affected, 2)
            transaction.commit()
        names = [name.rpartition(".")[2] for name, _ in self.calls]
        self.assertEqual(names, ["begin", "execute", "commit", "drop"])

    def test_runs_documents_and_times_are_converted(self) -> None:
        question = raw_runs.InterruptInfo("q", "n", "1", None, 2, None)
        for result, kind in (
            (raw_runs.RunResult_Completed(), "completed"),
            (raw_runs.RunResult_Interrupted([question]), "interrupted"),
            (raw_runs.RunResult_Failed(contract.failure("a").value), "failed"),
            (raw_runs.RunResult_Other("odd"), "odd"),
        ):
            ended = raw_runs.EndedRun(raw_runs.RunRef("t", "r"), result, '{"n": 1}')
            self.host("runs.wait", ended)
            self.assertEqual(runs.wait(runs.RunRef("t", "r")).outcome.kind, kind)
        self.host("runs.start", raw_runs.RunRef("t", "r"))
        runs.Start("g", thread_id="t", extra={"a": 1}).start()
        self.assertEqual(self.calls[-1][1][0].extra, [("a", "1")])
        runs.Start("g", thread_id="t", reject_if_interrupted=True).start()
        self.assertEqual(self.calls[-1][1][0].extra, [("reject_if_interrupted", "true")])
        self.host("runs.resume", raw_runs.RunRef("t", "r"))
        runs.Resume("t", on_failure=runs.OnFailure.REOPEN).answer_to("q", True).resume()
        sent = self.calls[-1][1][0]
        self.assertEqual(
            (sent.answers, sent.on_failure), ([("q", "true")], raw_runs.OnFailure_Reopen())
        )
        summary = raw_runs.ThreadSummary("t", "g", "idle", None, 1, 2, '{"n": 1}', [("a", "2")])
        self.host("runs.threads", raw_runs.ThreadPage([summary], "next"))
        page = runs.ThreadSearch("g", metadata={"n": 1}, limit=3).run()
        expected = runs.ThreadSummary("t", "g", "idle", None, 1, 2, {"n": 1}, {"a": 2})
        self.assertEqual(page, runs.ThreadPage([expected], "next"))
        request = raw_runs.ThreadSearch("g", None, '{"n":1}', None, 3, [])
        self.assertEqual(self.calls[-1][1], (request,))
        self.host("runs.update-thread")
        runs.update_thread("t", {"n": 2})
        self.assertEqual(self.calls[-1][1], ("t", '{"n":2}', []))
        self.host("memory.search", [raw_memory.Item(["a"], "k", "[1]", 1, 2, 0.5)])
        (item,) = memory.Search(["a"], filter={"n": 1}).run()
        self.assertEqual((item.value, item.score), ([1], 0.5))
        civil = clock.Civil(2026, 3, 1, 22, 30, 15, 7)
        self.host("clock.from-zone", 5)
        self.assertEqual(clock.from_zone(civil, "UTC"), 5)
        self.assertEqual(self.calls[-1][1], (raw_clock.Civil(2026, 3, 1, 22, 30, 15, 7), "UTC"))
        self.host("clock.to-zone", raw_clock.Zoned(self.calls[-1][1][0], 0, 7, "UTC"))
        self.assertEqual(clock.to_zone(0).civil, civil)
        self.host("blob.stat", raw_blob.Info("blob:1", 5, "text/plain"))
        self.assertEqual(blob.stat(blob.BlobRef("blob:1")).size, 5)

    def test_tools_of_others_are_converted(self) -> None:
        info = raw_tool.ToolInfo("add", "Adds.", "{}", False, [("reference", '"a/add"')])
        self.host("tools.list", [info])
        self.assertEqual(tools.list()[0].reference(), "a/add")
        update = raw.Update("a", "1", True)
        output = raw_tool.ToolOutput([raw.Part_Text("3")], "3", False, [update], [])
        self.host("tools.call", output)
        found = tools.Call("add", {"a": 1}, "c", state={"n": 1}).call()
        self.assertEqual((found.structured, found.updates[0].overwrite), (3, True))
        self.assertEqual(self.calls[-1][1][0].extra, [("state", '{"n":1}')])


class Start(Case):
    def test_an_import_that_the_build_did_not_see_is_named(self) -> None:
        del _host._of_component["sql"]
        with self.assertRaisesRegex(Failure, "import `wattle.sql` at the top of a module"):
            sql.database("a").query("b")

    def test_messages_of_logging_go_to_the_host(self) -> None:
        self.host("log.write")
        root = logging.Logger("root", logging.WARNING)
        with mock.patch("logging.getLogger", lambda: root):
            _start.forward_logging()
        root.info("stored %d rows", 3)
        root.error("bad")
        root.debug("left out")
        levels = [type(arguments[0]).__name__ for _, arguments in self.calls]
        self.assertEqual(levels, ["Level_Info", "Level_Error"])
        self.assertEqual(self.calls[0][1][1:], ("stored 3 rows", [("logger", '"root"')]))

    def test_lines_of_modules_are_kept(self) -> None:
        self.enterContext(mock.patch.dict(linecache.cache, clear=True))
        _start.keep_sources(["tests.contract", "tests.missing"])
        ((file, kept),) = linecache.cache.items()
        self.assertTrue(file.endswith("contract.py"))
        self.assertIsNone(kept[1])
        self.assertIn(file, _start.OWN_FILES)

    def test_a_failure_has_the_line_of_the_plugin_and_not_of_a_library(self) -> None:
        def failure(own: set[str]) -> str:
            with mock.patch.object(_answer, "OWN_FILES", own):
                try:
                    json.loads("{")
                except ValueError as error:
                    return _answer.failure_of(error).message
            return ""

        self.assertRegex(failure(set()), r"\(.*decoder\.py:\d+\)$")
        self.assertRegex(failure({__file__}), r"\(.*test_component\.py:\d+\)$")

    def test_a_module_that_cannot_be_loaded_is_noted(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as notes:
            _start.load("tests.contract", ["tests.missing"])
        self.assertIn("`tests.missing` is not part of the component", notes.getvalue())


if __name__ == "__main__":
    unittest.main()
