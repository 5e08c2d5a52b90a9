"""Tests of the entries that `@tool`, `@reducer` and `@handler` make, and of their values."""

import os
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal
from unittest import mock

from wattle import (
    DefinitionError,
    Failure,
    Image,
    Message,
    Request,
    Response,
    StreamFormat,
    ToolContext,
    ToolHints,
    ToolInfo,
    ToolOutput,
    Unchecked,
    _openapi,
    handler,
    manifest,
    reducer,
    testing,
    tool,
)
from wattle._registry import separate_plugin
from wattle.web import HandOff


@dataclass
class Number:
    number: Annotated[int, "Any whole number."]


@dataclass
class Item:
    """An item."""

    name: str
    size: Literal["s", "m"] = "s"


@dataclass
class Basket:
    items: list[Item]


class Case(unittest.TestCase):
    """Each test declares entries of its own."""

    def setUp(self) -> None:
        self.plugin = self.enterContext(separate_plugin())


class Tools(Case):
    def test_a_tool_has_its_arguments_and_only_declared_hints(self) -> None:
        @tool(read_only=True)
        def look(
            context: ToolContext, query: Annotated[str, "Words."], limit: int = 5
        ) -> list[str]:
            """Looks for words."""
            return [query, context.call_id][:limit]

        @tool
        def act() -> str:
            return "done"

        self.assertEqual(self.plugin.tools["look"].hints, ToolHints(read_only=True))
        self.assertEqual(self.plugin.tools["act"].hints, ToolHints())
        self.assertEqual(
            testing.tool_schema(look),
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words."},
                    "limit": {"type": "integer", "default": 5},
                },
                "required": ["query"],
            },
        )
        output = testing.call_tool(look, ToolContext(call_id="c"), {"query": "a"})
        self.assertEqual(output.text_content(), '["a","c"]')
        self.assertEqual(output.structured_as(list[str]), ["a", "c"])
        self.assertEqual(testing.call_tool(act, ToolContext(), {}), ToolOutput.text("done"))

    def test_only_unchecked_tools_accept_invalid_arguments(self) -> None:
        @tool
        def strict(number: Annotated[int, "Any whole number."]) -> int:
            return number

        @tool
        def lenient(context: ToolContext, args: Unchecked[Number]) -> str:
            return f"{args.raw} {args.violations}"

        self.assertFalse(self.plugin.tools["strict"].accepts_invalid)
        self.assertTrue(self.plugin.tools["lenient"].accepts_invalid)
        self.assertEqual(testing.tool_schema(strict), testing.tool_schema(lenient))
        wrong = {"number": "x"}
        context = ToolContext(violations=["`number` is text"])
        with self.assertRaisesRegex(Failure, "the arguments are invalid at `number`"):
            testing.call_tool(strict, context, wrong)
        output = testing.call_tool(lenient, context, wrong)
        self.assertEqual(output.text_content(), "{'number': 'x'} ['`number` is text']")
        self.assertEqual(Unchecked(Number, {"number": 7}).parse(), Number(7))

    def test_the_state_of_the_caller_is_read_as_a_type(self) -> None:
        self.assertEqual(ToolContext().state(), {})
        context = ToolContext().with_state({"number": 3})
        self.assertEqual(context.state(Number), Number(3))

    def test_an_output_has_parts_updates_and_errors(self) -> None:
        output = ToolOutput.error("no").with_update("a", 1).with_overwrite("b", 2)
        image = Image.url("https://a/b.png", "image/png")
        self.assertTrue(output.with_part(image).is_error)
        self.assertEqual([it.overwrite for it in output.updates], [False, True])
        self.assertEqual(output.content, ["no", image])
        with self.assertRaisesRegex(Failure, "read its text instead"):
            output.structured_as(int)

    def test_a_description_has_hints_and_a_reference(self) -> None:
        info = ToolInfo("look").with_reference("date/look")
        self.assertEqual((info.hints(), info.reference()), (ToolHints(), "date/look"))
        info.extra["hints"] = {"read_only": True}
        self.assertEqual(info.hints(), ToolHints(read_only=True))
        self.assertIsNone(info.place())
        source, failure = ToolInfo.missing("mcp:graph", Failure.unavailable("away")).place() or (
            "",
            0,
        )
        self.assertEqual((source, str(failure)), ("mcp:graph", "away"))


class Reducers(Case):
    def test_a_reducer_runs_on_documents(self) -> None:
        @reducer
        def total(current: int | None, updates: list[int]) -> int:
            """Adds up."""
            return (current or 0) + sum(updates)

        entry = self.plugin.reducers["total"]
        self.assertEqual(entry.doc, "Adds up.")
        self.assertEqual((entry.reduce("4", ["1", "2"]), entry.reduce(None, ["1"])), ("7", "1"))
        self.assertEqual(testing.reduce(total, 4, [1, 2]), 7)
        with self.assertRaisesRegex(Failure, "update 1 is invalid: must be integer"):
            entry.reduce(None, ["1", "null"])
        with self.assertRaisesRegex(Failure, "the current value is invalid"):
            entry.reduce('"x"', [])

    def test_bad_reducers_are_refused(self) -> None:
        def one(current: int) -> int: ...
        def untyped(current, updates: list[int]) -> int: ...
        def single(current: int | None, updates: int) -> int: ...

        for function, reason in (
            (one, "must have two parameters"),
            (untyped, "has the parameter `current` without a type"),
            (single, "has `updates`, which is not a list"),
        ):
            with self.assertRaisesRegex(DefinitionError, reason):
                reducer(function)


class Handlers(Case):
    def test_a_handler_reads_its_request(self) -> None:
        @handler("POST", "/items/{id}")
        def rename(request: Request) -> Response:
            item = request.json(Item)
            return Response.json(200, {"id": request.param("id", int), "name": item.name})

        entry = self.plugin.handlers["POST", "/items/{id}"]
        request = Request("POST", "/items/7", params=[("id", "7")], body=b'{"name": "lamp"}')
        response = entry.handle(request)
        self.assertEqual((response.status, response.json_body()), (200, {"id": 7, "name": "lamp"}))
        for body, params in ((b"{", "7"), (b"\xff", "7"), (b"{}", "7"), (b'{"name": "a"}', "x")):
            request = Request("POST", "/items/7", params=[("id", params)], body=body)
            response = entry.handle(request)
            self.assertEqual(response.status, 400)
            self.assertEqual(response.headers[0][1], "application/problem+json")

    def test_a_request_has_parameters_and_headers(self) -> None:
        query = [("q", "a b"), ("q", "second")]
        request = Request("GET", "/", query_params=query, headers=[("accept", "text/html")])
        self.assertEqual((request.query("q"), request.query("r")), ("a b", None))
        self.assertEqual(request.header("ACCEPT"), "text/html")
        with self.assertRaisesRegex(Failure, "has no parameter `id`") as raised:
            request.param("id")
        self.assertEqual(raised.exception.status(), 400)

    def test_a_failure_without_status_stays_a_failure(self) -> None:
        @handler("GET", "/a")
        def refuse(request: Request) -> Response:
            raise Failure.invalid("no")

        @handler("GET", "/b")
        def nothing(request: Request) -> Response:
            return None  # type: ignore[return-value]

        with self.assertRaisesRegex(Failure, "no"):
            self.plugin.handlers["GET", "/a"].handle(Request("GET", "/a"))
        with self.assertRaisesRegex(Failure, "returned a value of type `NoneType`"):
            self.plugin.handlers["GET", "/b"].handle(Request("GET", "/b"))

    def test_responses_have_bodies_headers_and_status(self) -> None:
        response = Response.bytes("image/png", b"\1").with_header("etag", "x").with_status(410)
        self.assertEqual((response.status, response.body), (410, b"\1"))
        self.assertEqual(response.headers, [("content-type", "image/png"), ("etag", "x")])
        with self.assertRaisesRegex(Failure, "no body of bytes"):
            Response.empty(204).json_body()
        hand_off = HandOff("t", StreamFormat.AI_SDK).cancel_on_disconnect(5).nodes("a", "b")
        expected = {"on_disconnect": "cancel", "grace_ms": 5, "nodes": ["a", "b"]}
        self.assertEqual(hand_off.extra, expected)
        self.assertIs(Response.hand_off_from(hand_off).body, hand_off)

    def test_bad_handlers_are_refused(self) -> None:
        def good(request: Request) -> Response: ...
        def two(request: Request, other: int) -> Response: ...

        for arguments, function, reason in (
            (("post", "/a"), good, "handles `post`; expected one of `GET`"),
            (("GET", "a"), good, "a path must start with `/`"),
            (("GET", "/a"), two, "must have one parameter"),
        ):
            with self.assertRaisesRegex(DefinitionError, reason):
                handler(*arguments)(function)

    def test_the_document_has_the_declared_types(self) -> None:
        @handler(
            "PUT",
            "/items/{id}/{*rest}",
            query={"dry": bool | None, "kind": str},
            body=Basket | None,
            returns={200: Basket, 204: None},
            events=Item,
            bytes="text/csv",
            error=Number,
        )
        def replace(request: Request) -> Response:
            """Replaces
            an item.

            Keeps its tags.
            """
            return Response.empty(204)

        @handler("GET", "/items")
        def items(request: Request) -> Response: ...

        entries = [(it.endpoint, it.doc) for it in self.plugin.handlers.values()]
        document = _openapi.document("shop", entries)
        operation = document["paths"]["/items/{id}/{rest}"]["put"]
        self.assertEqual(operation["summary"], "Replaces an item.")
        self.assertEqual(operation["description"], "Keeps its tags.")
        text = {"type": "string"}
        self.assertEqual(
            operation["parameters"],
            [
                {"name": "id", "in": "path", "required": True, "schema": text},
                {"name": "rest", "in": "path", "required": True, "schema": text},
                {"name": "dry", "in": "query", "required": False, "schema": {"type": "boolean"}},
                {"name": "kind", "in": "query", "required": True, "schema": text},
            ],
        )

        def reference(name: str) -> Any:
            return {"schema": {"$ref": f"#/components/schemas/{name}"}}

        body = {"required": False, "content": {"application/json": reference("Basket")}}
        self.assertEqual(operation["requestBody"], body)
        contents = {
            "application/json": reference("Basket"),
            "text/event-stream": reference("Item"),
            "text/csv": {"schema": text},
        }
        error = {"application/json": reference("Number")}
        self.assertEqual(
            operation["responses"],
            {
                "200": {"description": "Success", "content": contents},
                "204": {"description": "Success"},
                "default": {"description": "Error", "content": error},
            },
        )
        item = document["components"]["schemas"]["Item"]
        self.assertEqual(item["description"], "An item.")
        self.assertEqual(item["required"], ["name"])
        routes = _openapi.routes(entries)
        self.assertEqual(list(routes[0]["schemas"]), ["Basket", "Item", "Number"])
        nothing = {"default": {"description": "Response"}}
        self.assertEqual(routes[1], {"operation": {"responses": nothing}, "schemas": {}})

    def test_a_file_with_another_document_is_reported(self) -> None:
        @handler("GET", "/health", returns=Number)
        def health(request: Request) -> Response: ...

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "openapi.json"
            with self.assertRaisesRegex(AssertionError, "WATTLE_WRITE_OPENAPI=1"):
                testing.check_openapi(file, "health", [health])
            with mock.patch.dict(os.environ, {"WATTLE_WRITE_OPENAPI": "1"}):
                testing.check_openapi(file, "health", [health])
            testing.check_openapi(file, "health", [health])


class Plugin(Case):
    def test_a_plugin_has_one_manifest(self) -> None:
        manifest('llm = ["chat"]')
        self.assertEqual(self.plugin.manifest, 'llm = ["chat"]')
        with self.assertRaisesRegex(DefinitionError, "two manifests"):
            manifest("")

    def test_messages_have_authors(self) -> None:
        roles = [it.role for it in (Message.system("a"), Message.user("b"), Message.assistant("c"))]
        self.assertEqual(roles, ["system", "user", "assistant"])
        result = Message.tool_result("c", "3")
        self.assertEqual((result.role, result.text()), ("tool", ""))


if __name__ == "__main__":
    unittest.main()
