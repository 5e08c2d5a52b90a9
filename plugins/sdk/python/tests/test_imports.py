"""Tests of the modules that call the host, with the fake host."""

import unittest
from dataclasses import dataclass
from typing import Any

from wattle import (
    Conversation,
    Failure,
    Image,
    Message,
    ToolContext,
    ToolInfo,
    ToolOutput,
    blob,
    clock,
    code,
    emit,
    http,
    interrupt,
    llm,
    log,
    memory,
    prompt,
    random,
    runs,
    settings,
    sql,
    tenants,
    testing,
    tool,
    tools,
)
from wattle._registry import separate_plugin
from wattle.message import ToolCall
from wattle.testing import FakeHost, Logged, SqlAnswer


@dataclass
class Verdict:
    kind: str


class Models(unittest.TestCase):
    def test_a_model_is_called_with_a_schema(self) -> None:
        host = FakeHost().llm(lambda request: llm.Completion.of_json({"kind": request.route}))
        with host:
            request = llm.Request("chat", temperature=0.0).system("Say what this is.").user("hi")
            completion = request.schema(Verdict, "verdict").complete()
        self.assertEqual(completion.structured_as(Verdict), Verdict("chat"))
        sent = host.llm_requests[0]
        self.assertEqual(sent.text(), "Say what this is.\nhi")
        assert sent.response_schema is not None
        self.assertEqual(sent.response_schema.schema["properties"], {"kind": {"type": "string"}})
        with self.assertRaisesRegex(Failure, "use `Request.schema`"):
            llm.Completion.of_text("a").structured_as(Verdict)

    def test_a_history_has_the_format_of_the_host(self) -> None:
        talk = Conversation("talk", start=5, length=9)
        now = Message.user("now")
        request = llm.Request("chat").system("be brief")
        stored = {"role": "user", "content": "now"}
        request.history(talk, until=7, append=[stored], names={"mcp:a/b": "b"}).message(now)
        history = {"channel": "talk", "at": 1, "from": 0, "to": 7}
        self.assertEqual(
            request.extra["history"], {**history, "append": [stored], "names": {"mcp:a/b": "b"}}
        )
        self.assertEqual(request.text(), "be brief\nnow")
        request.history(talk, after="m4")
        history = {"channel": "talk", "at": 2, "from": {"after": "m4"}}
        self.assertEqual(request.extra["history"], history, "the last one counts")

    def test_the_completion_of_a_request_with_a_history_has_ids_of_its_calls(self) -> None:
        talk = Conversation("talk", start=0, length=1)
        script = llm.Completion.of_tool_call("call-1", "add", {"a": 1})
        with FakeHost().llm(lambda _: script):
            self.assertIsNone(llm.Request("chat").complete().call_ids())
            completion = llm.Request("chat").history(talk).complete()
            self.assertEqual(completion.call_ids(), ["call-1"])
            with llm.Request("chat").history(talk).stream() as stream:
                self.assertEqual(stream.finish().call_ids(), ["call-1"])
            script.extra["call_ids"] = ["call-1-7"]
            self.assertEqual(llm.Request("chat").history(talk).complete().call_ids(), ["call-1-7"])
        with FakeHost().llm(lambda _: llm.Completion.of_text("well")):
            self.assertIsNone(llm.Request("chat").history(talk).complete().call_ids())
        self.assertIsNone(llm.Completion(extra={"call_ids": "c"}).call_ids())

    def test_an_image_joins_the_last_message_of_a_person(self) -> None:
        image = Image.url("https://a/b.png", "image/png")
        request = llm.Request("vision").system("look").image(image)
        self.assertEqual([it.role for it in request.messages], ["system", "user"])
        request = llm.Request("vision").user("what is it").image(image)
        self.assertEqual(request.messages[0].parts, ["what is it", image])

    def test_several_calls_return_completions_and_failures_in_order(self) -> None:
        def script(request: llm.Request) -> llm.Completion:
            if request.text() == "bad":
                raise Failure.conflict("not now")
            return llm.Completion.of_text(request.text())

        with FakeHost().llm(script):
            answers = llm.complete_all(llm.Request("chat").user(it) for it in ("a", "bad"))
        self.assertEqual(answers[0], llm.Completion.of_text("a"))
        assert isinstance(answers[1], Failure)
        self.assertEqual(answers[1].code, code.CONFLICT)

    def test_a_stream_has_deltas_of_text_and_tool_calls(self) -> None:
        answer = llm.Completion.of_tool_call("call-1", "add", {"a": 1})
        answer.parts.insert(0, "I will")
        with FakeHost().llm(lambda _: answer), llm.Request("chat").user("go").stream() as stream:
            events = list(stream)
            self.assertIs(stream.finish(), answer)
        call = llm.StreamEvent("tool_call_delta", index=0, name="add", arguments='{"a":1}')
        texts = [llm.StreamEvent("text", "I "), llm.StreamEvent("text", "will")]
        self.assertEqual(events, [*texts, call])

    def test_routes_and_images(self) -> None:
        info = llm.RouteInfo(model="small", has_fallback=True)
        host = FakeHost().route("chat", info).images(lambda _: [("image/png", b"png")])
        with host:
            self.assertEqual(llm.route("chat").candidates(), 2)
            with self.assertRaisesRegex(Failure, "`FakeHost.route`"):
                llm.route("vision")
            images = llm.generate_images(llm.ImageRequest("images", "a harbor at dawn"))
            self.assertEqual(blob.get(images[0].blob), b"png")
        self.assertEqual((images[0].model(), images[0].provider()), ("images", "fake"))
        self.assertTrue(images[0].link().startswith("/blobs/"))

    def test_a_tool_is_offered_with_the_schema_of_a_type(self) -> None:
        request = llm.Request("chat").tool(llm.ToolDefinition.of(Verdict, "say", "Says."))
        request.tool(ToolInfo("look", "Looks."))
        self.assertEqual([it.name for it in request.tools], ["say", "look"])
        self.assertEqual(request.tools[0].arguments_schema["required"], ["kind"])


class Http(unittest.TestCase):
    def test_a_request_is_sent(self) -> None:
        host = FakeHost().http(lambda request: http.Response(200, b'{"USD": 1.1}'))
        with host:
            request = http.Request.get("https://api.example.com/rates", timeout_ms=5_000)
            request.query("base", "EUR").header("authorization", "Bearer {{secret:RATES_KEY}}")
            response = request.send().ok()
        self.assertEqual(response.json(dict[str, float]), {"USD": 1.1})
        self.assertEqual(response.url, "https://api.example.com/rates?base=EUR")
        self.assertEqual(host.http_requests, [request])

    def test_a_method_is_in_upper_case(self) -> None:
        with FakeHost().http(lambda request: http.Response(200, request.method.encode())):
            response = http.Request("patch", "https://a").send()
        self.assertEqual(response.body, b"PATCH")

    def test_query_parameters_are_encoded(self) -> None:
        for url, name, value, expected in (
            ("https://a/b", "q", "x y&z", "https://a/b?q=x%20y%26z"),
            ("https://a/b?c=1", "q", "\u00e9", "https://a/b?c=1&q=%C3%A9"),
            ("https://a/b#top", "q", "1", "https://a/b?q=1#top"),
            ("https://a", "k", "{{secret:KEY}}", "https://a?k={{secret:KEY}}"),
        ):
            self.assertEqual(http.Request.get(url).query(name, value).url, expected)
        url = http.Request.get("https://a").query("k", "{{secret:A}}&b={{secret:B}}").url
        self.assertIn("%26", url)

    def test_a_json_body_has_its_content_type(self) -> None:
        request = http.Request.post("https://a").json({"a": [1]})
        self.assertEqual(request.body, '{"a":[1]}')
        self.assertEqual(request.headers, [("content-type", "application/json")])

    def test_statuses_become_failures(self) -> None:
        for status, expected in (
            (429, (code.RATE_LIMITED, True)),
            (408, (code.UNAVAILABLE, True)),
            (503, (code.UNAVAILABLE, True)),
            (404, (code.NOT_FOUND, False)),
            (400, ("http-status", False)),
        ):
            with self.assertRaises(Failure) as raised:
                http.Response(status, b"x" * 1000).ok()
            self.assertEqual((raised.exception.code, raised.exception.retryable), expected)
            self.assertLess(len(raised.exception.message), 300)

    def test_several_requests_are_sent(self) -> None:
        with FakeHost().http(lambda request: http.Response(200, request.url.encode())):
            requests = [http.Request.get("https://a"), http.Request.get("https://b")]
            answers = http.send_all(requests)
        bodies = [it.body for it in answers if isinstance(it, http.Response)]
        self.assertEqual(bodies, [b"https://a", b"https://b"])


class Sql(unittest.TestCase):
    def test_rows_convert_to_types(self) -> None:
        columns = ["id", "name", "price", "flag", "tags"]
        row = [7, None, sql.Other("1.50"), 1, '["a"]']
        with FakeHost().sql(lambda _: sql.Rows.new(columns, [row])):
            rows = sql.database("asset").query("SELECT * FROM item WHERE id = $1", [7])
        found = rows.one()
        self.assertEqual((len(rows), found["id"], found.get("id", int)), (1, 7, 7))
        self.assertEqual(found.get("name", str, nullable=True), None)
        self.assertEqual(found.get("price", float), 1.5)
        self.assertIs(found.get("flag", bool), True)
        self.assertEqual(found.get("tags", list), ["a"])
        self.assertEqual(rows.column("id", int), [7])
        self.assertEqual(rows.to_json()[0]["price"], "1.50")
        for column, of, message in (
            ("name", str, "column `name` is null, expected text"),
            ("id", bool, "column `id` is an integer, expected a boolean"),
            ("price", int, "a value of the database's own type, expected a whole number"),
            ("missing", int, "the query has no column `missing`"),
        ):
            with self.assertRaisesRegex(Failure, message):
                found.get(column, of)
        with self.assertRaisesRegex(Failure, "the query found no row"):
            sql.Rows().one()

    def test_a_transaction_is_committed_or_rolled_back(self) -> None:
        host = FakeHost().sql(lambda _: SqlAnswer(sql.Rows.new(["id"], [[1]]), 1))
        with host:
            with sql.database("asset").begin() as transaction:
                executed = transaction.execute("INSERT INTO item VALUES ($1)", ["lamp"])
                transaction.query("SELECT 1")
                transaction.commit()
            with sql.database("asset").begin():
                pass
        self.assertEqual((executed.rows_affected, executed.returned.one()["id"]), (1, 1))
        texts = [it.text.split(" ")[0] for it in host.statements]
        expected = ["BEGIN", "INSERT", "SELECT", "COMMIT", "BEGIN", "ROLLBACK"]
        self.assertEqual(texts, expected)
        self.assertTrue(all(it.in_transaction for it in host.statements))

    def test_the_dialect_is_that_of_the_script(self) -> None:
        with FakeHost().dialect("postgres"):
            self.assertEqual(sql.database("asset").dialect(), sql.Dialect.POSTGRES)


class Memory(unittest.TestCase):
    def test_documents_are_written_found_and_expire(self) -> None:
        host = FakeHost().now_ms(0)
        with host:
            memory.put(["users", "42"], "language", "de")
            memory.put_for(["users", "42"], "cart", ["tea"], 60_000)
            memory.put_while_read(["users", "42"], "mood", Verdict("good"), 60_000)
            host.advance_ms(50_000)
            item = memory.get(["users", "42"], "mood")
            assert item is not None
            self.assertEqual(item.value_as(Verdict), Verdict("good"))
            host.advance_ms(50_000)
            found = memory.Search(["users"], limit=10).run()
            self.assertEqual({it.key for it in found}, {"language", "mood"})
            self.assertEqual(memory.list_namespaces(["*"], limit=9), [["users", "42"]])
            memory.delete(["users", "42"], "language")
            self.assertIsNone(memory.get(["users", "42"], "language"))

    def test_searches_filter_and_rank(self) -> None:
        def keys(**search: Any) -> list[str]:
            prefix = search.pop("prefix", [])
            return [it.key for it in memory.Search(prefix, **search).run()]

        with FakeHost():
            memory.put(["a", "1"], "tea", {"text": "green tea", "n": 1})
            memory.put(["a", "2"], "dog", {"text": "a dog", "n": 2})
            memory.put(["b", "1"], "cat", {"text": "a cat"})
            self.assertEqual(keys(prefix=["a"], query="Tea dog GREEN"), ["tea", "dog"])
            self.assertEqual(keys(filter={"n": {"$gt": 1, "$ne": 3}}), ["dog"])
            self.assertEqual(keys(filter={"n": {"$lte": 1}}), ["tea"])
            self.assertEqual(keys(filter={"n": None}), ["cat"])
            with self.assertRaisesRegex(Failure, "not to `\\$in`"):
                keys(filter={"n": {"$in": [1]}})
            found = memory.list_namespaces(["*", "1"], max_depth=1, limit=9)
            self.assertEqual(found, [["a"], ["b"]])


class Runs(unittest.TestCase):
    def test_a_run_is_started_and_answered(self) -> None:
        interrupt = runs.Interrupt("q-1", "review", {"rows": 2})
        host = FakeHost()
        host.run_ends(lambda run: runs.EndedRun(run, runs.Outcome.interrupted(interrupt)))
        with host:
            ended = runs.Start("asset", {"text": "hi"}).start_and_wait()
            self.assertEqual(ended.question().payload, {"rows": 2})
            runs.Resume(ended.run.thread_id).answer({"ok": True}).resume()
            runs.cancel(ended.run)
        self.assertEqual(host.started[0].input, {"text": "hi"})
        self.assertEqual(host.resumed[0].answers, [("", {"ok": True})])
        self.assertEqual(host.cancelled, [runs.RunRef("thread-1", "run-1")])
        with self.assertRaisesRegex(Failure, "the run is interrupted"):
            ended.completed()

    def test_a_start_can_reject_a_thread_that_waits_for_answers(self) -> None:
        question = runs.Interrupt("q", "review", {})
        host = FakeHost().thread(runs.Thread("a", "g", "interrupted", interrupts=[question]))
        host.thread(runs.Thread("b", "g", "interrupted"))
        key = "reject_if_interrupted"
        with host:
            for rejecting in (
                runs.Start("g", thread_id="a", reject_if_interrupted=True),
                runs.Start("g", thread_id="a", extra={key: True}),
            ):
                with self.assertRaises(Failure) as raised:
                    rejecting.start()
                self.assertEqual(raised.exception.code, code.CONFLICT)
                self.assertEqual(raised.exception.details, {"reason": "interrupted"})
            runs.Start("g", thread_id="b", extra={key: True}).start()
            runs.Start("g", thread_id="a", extra={key: False}).start()
        self.assertEqual([it.thread_id for it in host.started], ["b", "a"])

    def test_outcomes_become_states_and_failures(self) -> None:
        run = runs.RunRef("t", "r")
        ended = runs.EndedRun(run, runs.Outcome.completed(), {"n": 1, "null": None})
        self.assertEqual(ended.completed(), {"n": 1, "null": None})
        self.assertEqual((ended.channel("n", int), ended.channel("null", int)), (1, None))
        with self.assertRaisesRegex(Failure, "channel `n` is invalid"):
            ended.channel("n", str)
        for outcome, message in (
            (runs.Outcome.failed(Failure.invalid("bad")), "bad"),
            (runs.Outcome.cancelled(), "the run was cancelled"),
            (runs.Outcome("odd"), "unknown outcome `odd`"),
        ):
            with self.assertRaisesRegex(Failure, message):
                runs.EndedRun(run, outcome).question()

    def test_threads_and_events_are_read(self) -> None:
        event = {"seq": 1, "at_ms": 2, "run": "r", "type": "progress", "done": 1}
        host = FakeHost().thread(runs.Thread("t", "asset", "idle", {"n": 1})).event("t", event)
        with host:
            thread = runs.thread("t")
            assert thread is not None
            self.assertEqual(thread.channel("n", int), 1)
            self.assertEqual(runs.events("t", 0, 10), [event])
            self.assertEqual(runs.events("t", 1, 10), [])
            runs.delete_thread("t")
            self.assertIsNone(runs.thread("t"))

    def test_threads_are_listed_in_pages(self) -> None:
        def ids(**conditions: Any) -> str:
            page = runs.ThreadSearch(**conditions).run()
            return "".join(thread.thread_id for thread in page.threads)

        tea = {"title": "Tea", "of": {"id": 7, "new": True}}
        host = FakeHost()
        for id, graph, updated_ms, metadata in (
            ("a", "notes", 1, tea),
            ("b", "notes", 5, {"title": "Coffee"}),
            ("c", "other", 5, {}),
        ):
            host.thread(
                runs.Thread(id, graph, "idle", updated_ms=updated_ms, metadata={**metadata})
            )
        with host:
            for conditions, expected in (
                ({}, "bca"),
                ({"graph": "notes"}, "ba"),
                ({"text": "TEA"}, "a"),
                ({"metadata": {"of": {"id": 7}}}, "a"),
                ({"metadata": {"of": 7}}, ""),
                ({"metadata": {"of": {"new": True}}}, "a"),
                ({"metadata": {"of": {"new": 1}}}, ""),
                ({"limit": 0}, "b"),
            ):
                self.assertEqual(ids(**conditions), expected, conditions)
            page = runs.ThreadSearch(limit=2).run()
            self.assertEqual(ids(limit=2, after=page.next), "a")
            runs.update_thread("a", {"title": "Green tea"})
            self.assertEqual(ids(), "abc")
            thread = runs.thread("a")
            assert thread is not None
            self.assertEqual(thread.metadata, {**tea, "title": "Green tea"})
            for call, code in (
                (lambda: runs.update_thread("nobody", {}), "not-found"),
                (lambda: runs.events("nobody", 0, 1), "not-found"),
                (lambda: runs.ThreadSearch(after="x").run(), "invalid"),
            ):
                with self.assertRaises(Failure) as raised:
                    call()
                self.assertEqual(raised.exception.code, code)

    def test_events_are_read_as_types(self) -> None:
        def read(**event: Any) -> Any:
            return runs.Event.read({"seq": 1, "at_ms": 2, "run": "r", **event}).kind

        place = {"task": "t", "node": "n", "call": 3}
        for function, is_model, is_tool in (
            ("llm.complete", True, False),
            ("llm.stream.next", False, False),
            ("tools.call", False, True),
        ):
            call = read(type="call_started", function=function, summary="s", **place)
            self.assertEqual((call.is_model(), call.is_tool()), (is_model, is_tool))
        head = {"type": "called", "function": "llm.complete", "duration_us": 7, "request": {}}
        called = read(result={"Ok": {"parts": []}}, **head, **place)
        self.assertEqual(called.output(), {"parts": []})
        called = read(result={"Err": {"code": "timeout", "message": "late"}}, **head, **place)
        self.assertEqual(called.failure().code, "timeout")
        with self.assertRaisesRegex(Failure, "late"):
            called.output()
        deltas = [{"kind": "text", "text": "a"}, {"kind": "tool_call", "index": 0}]
        streamed = read(type="streamed", deltas=deltas, **place)
        self.assertEqual([it.kind for it in streamed.deltas], ["text", "tool_call"])
        self.assertEqual(read(type="progress").type, "progress")
        with self.assertRaisesRegex(Failure, "event is invalid: missing field `run`"):
            runs.Event.read({"seq": 1, "at_ms": 2, "type": "progress"})


class Others(unittest.TestCase):
    def test_blobs_are_stored_and_read(self) -> None:
        with FakeHost():
            note = blob.put(b"hello", "text/plain")
            self.assertEqual((blob.get(note), blob.get_range(note, 1, 3)), (b"hello", b"ell"))
            self.assertEqual(blob.stat(note), blob.Info(note, 5, "text/plain"))
            self.assertTrue(blob.link(note).startswith("/blobs/"))
            image = Image.data_url("data:image/png;base64,iVBORw==")
            self.assertEqual(image.media_type, "image/png")
        for url in ("http://a", "data:image/png", "data:image/png,abc", "data:a;base64,*"):
            with self.assertRaisesRegex(Failure, "read a data URL"):
                blob.parse_data_url(url)
        self.assertEqual(blob.parse_data_url("data:;base64,aGk=").media_type, "text/plain")

    def test_clocks_convert_between_zones(self) -> None:
        # 2026-03-01T22:30:00Z, where clocks are eight hours ahead.
        with FakeHost().now_ms(1_772_404_200_000).zone("Asia/Shanghai", 8 * 3600) as host:
            self.assertEqual(clock.time_zone(), "Asia/Shanghai")
            today = clock.to_zone(clock.now_ms())
            self.assertEqual((today.civil.date(), today.weekday), ("2026-03-02", 1))
            self.assertEqual(clock.from_zone(today.civil), clock.now_ms())
            self.assertEqual(clock.to_zone(0, "UTC").civil, clock.Civil.midnight(1970, 1, 1))
            host.advance_ms(2)
            self.assertEqual(clock.monotonic_ns(), 2_000_000)
            with self.assertRaisesRegex(Failure, "`FakeHost.zone`"):
                clock.to_zone(0, "Mars")

    def test_random_numbers_differ_and_are_the_same_in_each_run(self) -> None:
        def numbers() -> tuple[bytes, int, str]:
            return random.bytes(20), random.u64(), random.uuid()

        first, second = FakeHost().run(numbers), FakeHost().run(numbers)
        self.assertEqual(first, second)
        self.assertEqual((len(first[0]), first[2][14]), (20, "4"))
        with FakeHost():
            self.assertNotEqual(random.uuid(), random.uuid())

    def test_interrupts_take_answers_in_order(self) -> None:
        host = FakeHost().answer(True).answer({"kind": "a"})
        with host:
            self.assertIs(interrupt.ask({"amount": 120}, bool), True)
            self.assertEqual(interrupt.ask("why", Verdict), Verdict("a"))
            with self.assertRaises(Failure) as raised:
                interrupt.ask("again")
        self.assertEqual(raised.exception.code, "interrupted")
        self.assertEqual(host.questions[0].response_schema, {"type": "boolean"})
        self.assertIsNone(host.questions[2].response_schema)

    def test_tools_are_listed_and_called(self) -> None:
        away = ToolInfo.missing("mcp:graph", Failure.unavailable("it is down"))
        host = FakeHost().tool("echo", ToolOutput.json).described_tool(away, ToolOutput.json)
        with host:
            listing = tools.listing()
            self.assertEqual([it.name for it in tools.list()], ["echo"])
            request = ToolCall("c", "echo", {"a": 1})
            output = tools.Call.from_request(request).call()
            answers = tools.call_all([tools.Call("echo", 1), tools.Call("none", 2)])
        self.assertEqual(
            (listing.missing[0].source, str(listing.missing[0].failure)),
            ("mcp:graph", "it is down"),
        )
        self.assertEqual(output.structured, {"a": 1})
        self.assertEqual(host.tool_calls[0].call_id, "c")
        assert isinstance(answers[1], Failure)
        self.assertEqual(answers[1].code, code.NOT_FOUND)

    def test_a_tenant_sets_its_route(self) -> None:
        host = FakeHost()
        with host:
            tenants.set_route("chat", {"model": "large", "key": "sk-1"})
            self.assertEqual(tenants.get_route("chat"), {"model": "large"})
            tenants.remove_route("chat")
            self.assertIsNone(tenants.get_route("chat"))
        self.assertEqual(host.set_routes, [("chat", {"model": "large", "key": "sk-1"})])

    def test_events_progress_and_messages_are_recorded(self) -> None:
        host = FakeHost()
        with host:
            emit.progress("reading page 3 of 4", 0.75)
            emit.message_delta("greeting", "Hello")
            emit.message_end("greeting")
            log.info("stored 3 rows", rows=3)
        self.assertEqual(host.progress, [("reading page 3 of 4", 0.75)])
        self.assertEqual([name for name, _ in host.emitted], ["message.delta", "message.end"])
        self.assertEqual(host.logged, [Logged(log.Level.INFO, "stored 3 rows", {"rows": 3})])
        log.info("without a host")

    def test_settings_are_read_as_types(self) -> None:
        with FakeHost().setting("zone", "Asia/Shanghai").setting("rows", 50):
            self.assertEqual(settings.require("zone", str), "Asia/Shanghai")
            self.assertIsNone(settings.get("limit", int))
            self.assertEqual(settings.all()["rows"], 50)
            with self.assertRaisesRegex(Failure, "setting `rows` is invalid: must be string"):
                settings.get("rows", str)
            with self.assertRaisesRegex(Failure, "add it to `\\[settings\\]`"):
                settings.require("limit", int)

    def test_a_blank_text_setting_is_missing(self) -> None:
        for setting, expected in (
            (None, None),
            ("", None),
            (" \u0085\n", None),
            (" zh\u3000", "zh"),
            ("\ufeffzh CN", "\ufeffzh CN"),
            ("\u001czh", "\u001czh"),
        ):
            host = FakeHost() if setting is None else FakeHost().setting("language", setting)
            with self.subTest(setting), host:
                self.assertEqual(settings.text("language"), expected)
                self.assertEqual(settings.text_or("language", "en"), expected or "en")
        with (
            FakeHost().setting("zone", 8),
            self.assertRaisesRegex(Failure, "setting `zone` is invalid"),
        ):
            settings.text("zone")

    def test_prompts_that_do_not_match_their_values_are_rejected(self) -> None:
        self.assertEqual(prompt.fill("{{a}}, {{ b }}.\n", a="{{b}}", b="2"), "{{b}}, 2.")
        self.assertEqual(prompt.fill('{"a": {}}\n\n'), '{"a": {}}')
        for template, why in (
            ("{{c}}", "placeholder `c` has no value"),
            ("none", "value `a` has no placeholder"),
            ("{{a", "`{{` is not closed"),
        ):
            with self.assertRaisesRegex(Failure, why):
                prompt.fill(template, a="1")

    def test_a_placeholder_has_any_name(self) -> None:
        self.assertEqual(prompt.fill("Use {{template}}.", template="B5"), "Use B5.")
        self.assertEqual(prompt.fill("Use {{paper size}}.", **{"paper size": "B5"}), "Use B5.")

    def test_calls_without_a_host_or_script_name_the_missing_method(self) -> None:
        with self.assertRaisesRegex(Failure, "`FakeHost.run`"):
            emit.custom("a", 1)
        with FakeHost(), self.assertRaisesRegex(Failure, "`FakeHost.sql`"):
            sql.database("a").query("SELECT 1")

    def test_fake_hosts_nest(self) -> None:
        outer, inner = FakeHost(), FakeHost()
        with outer:
            inner.run(lambda: emit.custom("inner", 1))
            emit.custom("outer", 1)
        self.assertEqual((outer.emitted, inner.emitted), ([("outer", 1)], [("inner", 1)]))

    def test_a_tool_asks_before_it_acts(self) -> None:
        with separate_plugin():

            @tool
            def pay(context: ToolContext, amount: int) -> ToolOutput:
                if not interrupt.ask({"amount": amount}, bool):
                    return ToolOutput.error("the payment was not approved")
                return ToolOutput.text("paid").with_update("paid", amount)

        with FakeHost().answer(False):
            output = testing.call_tool(pay, ToolContext(), {"amount": 500})
        self.assertTrue(output.is_error)


class Failures(unittest.TestCase):
    def test_status_keeps_other_details(self) -> None:
        failure = Failure.invalid("no", details={"field": "a"}).with_status(400)
        self.assertEqual(failure.details, {"field": "a", "http_status": 400})
        failure = Failure.invalid("no", details=[1]).with_status(400)
        self.assertEqual(failure.details, {"facts": [1], "http_status": 400})
        self.assertIsNone(Failure.invalid("no", details={"http_status": "x"}).status())
        self.assertIsNone(Failure.invalid("no", details={"status": 401}).status())

    def test_a_failure_is_read_from_json(self) -> None:
        failure = Failure.unavailable("down", details={"a": 1})
        known = Failure.from_json(failure.to_json())
        self.assertEqual(vars(known), vars(failure))
        self.assertEqual(Failure.from_json("odd").code, code.INTERNAL)


if __name__ == "__main__":
    unittest.main()
