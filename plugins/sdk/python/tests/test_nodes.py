"""Tests of the entries that `@node` makes, from the perspective of the host."""

import unittest
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

from mashumaro.types import Alias

from wattle import (
    END,
    Context,
    Conversation,
    Decision,
    DefinitionError,
    Failure,
    FromConfig,
    NodeError,
    Outcome,
    Reads,
    code,
    node,
    testing,
)
from wattle._registry import separate_plugin


class Update(TypedDict):
    words: int


@dataclass
class Config:
    """How to repeat."""

    times: Annotated[int, "How often."] = 1


@dataclass
class Draft:
    text: str
    tags: list[str] = field(default_factory=list)


class Case(unittest.TestCase):
    """Each test declares nodes of its own."""

    def setUp(self) -> None:
        self.plugin = self.enterContext(separate_plugin())


class Description(Case):
    def test_a_node_is_described_by_its_function(self) -> None:
        @node
        def count_words(context: Context, text: str, limit: int | None = None) -> Update:
            """Counts the words of a text.

            Up to a limit.
            """
            return {"words": len(text.split()[:limit])}

        entry = self.plugin.nodes["count_words"]
        self.assertEqual(entry.doc, "Counts the words of a text.\n\nUp to a limit.")
        inputs, outputs = testing.node_schemas(count_words)
        self.assertEqual(
            inputs,
            {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "limit": {"type": ["integer", "null"]},
                },
                "required": ["text"],
            },
        )
        self.assertEqual(
            outputs,
            {"type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"]},
        )
        decision = testing.run_node(count_words, Context(), {"text": "a b c", "limit": 2})
        self.assertEqual(decision.update("words"), 2)
        self.assertEqual(count_words(Context(), "a b"), {"words": 2})

    def test_the_context_and_parameters_are_optional(self) -> None:
        @node(name="route-it")
        def route() -> Outcome[None]:
            return Outcome().goto("next").send("other", {"n": 1})

        self.assertIn("route-it", self.plugin.nodes)
        empty = {"type": "object", "properties": {}}
        self.assertEqual(testing.node_schemas(route), (empty, empty))
        decision = testing.run_node(route, Context(step=3), {})
        self.assertEqual(decision.goto, ["next"])
        self.assertEqual(decision.sends[0].input, {"n": 1})

    def test_the_first_parameter_without_a_type_is_the_context_by_its_name(self) -> None:
        @node
        def step(ctx, text: str) -> {"step": int}:
            return {"step": ctx.step + len(text)}

        decision = testing.run_node(step, Context(step=3), {"text": "a"})
        self.assertEqual(decision.update("step"), 4)

    def test_types_can_be_text(self) -> None:
        @node
        def step(ctx: "Context", text: "str") -> "{'n': int}":
            return {"n": len(text)}

        self.assertEqual(testing.node_schemas(step)[1]["properties"], {"n": {"type": "integer"}})

    def test_keywords_stand_for_the_whole_state(self) -> None:
        @node
        def copy(ctx: Context, **channels: Any) -> dict[str, Any]:
            return channels

        self.assertEqual(testing.node_schemas(copy), ({}, {}))
        decision = testing.run_node(copy, Context(), {"a": 1, "b-c": None})
        self.assertEqual(decision.update("a"), 1)
        self.assertEqual([update.channel for update in decision.updates], ["a", "b-c"])

    def test_a_channel_can_have_another_name_than_its_parameter(self) -> None:
        @node
        def total(
            cost: Annotated[int, Alias("total-cost"), "In cents."] = 5,
        ) -> {"total-cost": int}:
            return {"total-cost": cost + 1}

        inputs, _ = testing.node_schemas(total)
        described = {"type": "integer", "description": "In cents.", "default": 5}
        self.assertEqual(inputs["properties"], {"total-cost": described})
        for document, cost in (({"total-cost": 1}, 2), ({}, 6)):
            decision = testing.run_node(total, Context(), document)
            self.assertEqual(decision.update("total-cost"), cost)

    def test_a_missing_channel_is_none_if_its_type_has_none(self) -> None:
        @node
        def guess(
            context: Context,
            age: int | None,
            name: Annotated[str | None, Alias("full-name")],
        ) -> {"seen": list}:
            return {"seen": [age, name]}

        self.assertNotIn("required", testing.node_schemas(guess)[0])
        for document, seen in (
            ({}, [None, None]),
            ({"age": 7}, [7, None]),
            ({"age": None, "full-name": "a"}, [None, "a"]),
        ):
            decision = testing.run_node(guess, Context(), document)
            self.assertEqual(decision.update("seen"), seen)

    def test_parameters_are_converted_to_their_types(self) -> None:
        @node
        def shorten(ctx: Context, draft: Draft) -> Draft:
            return Draft(draft.text[:2], draft.tags)

        decision = testing.run_node(shorten, Context(), {"draft": {"text": "long", "tags": ["a"]}})
        self.assertEqual(decision.update("text"), "lo")
        self.assertEqual(decision.update("tags"), ["a"])

    def test_bad_functions_are_refused_with_their_place(self) -> None:
        async def waits(ctx: Context) -> None: ...
        def generates(ctx: Context) -> None:
            yield

        def untyped(ctx: Context, text) -> None: ...
        def unreturning(ctx: Context, text: str): ...
        def returns_text(ctx: Context) -> str:
            return ""

        def positional(ctx: Context, text: str, /) -> None: ...
        def late(text: str, ctx: Context) -> None: ...
        def both(ctx: Context, text: str, **channels: Any) -> None: ...
        def unknown(ctx: Context, text: "Missing") -> None: ...  # noqa: F821
        def foreign(ctx: Context, text: complex) -> None: ...
        def twice(a: Annotated[int, Alias("x")], b: Annotated[int, Alias("x")]) -> None: ...

        for function, reason in (
            (waits, "is asynchronous"),
            (generates, "is a generator"),
            (untyped, "has the parameter `text` without a type"),
            (unreturning, "has no return type"),
            (returns_text, "returns `str`, which has no channels"),
            (positional, "has the positional parameter `text`"),
            (late, "has its context `ctx` in another place than the first"),
            (both, "has parameters beside `**channels`"),
            (unknown, "has a type that cannot be evaluated: name 'Missing' is not defined"),
            (foreign, "has a type that JSON cannot have"),
            (twice, "has two parameters for `x`"),
        ):
            with self.subTest(function.__name__), self.assertRaises(DefinitionError) as raised:
                node(function)
            message = str(raised.exception)
            self.assertIn(f"`{function.__name__}` {reason}", message)
            self.assertRegex(message, r"test_nodes\.py:\d+: ")

    def test_two_nodes_cannot_have_one_name(self) -> None:
        @node(name="a")
        def first() -> None: ...

        with self.assertRaisesRegex(DefinitionError, r"declares the node `a` again, like .*:\d+"):

            @node(name="a")
            def second() -> None: ...

    def test_helpers_name_a_function_without_decorator(self) -> None:
        with self.assertRaisesRegex(TypeError, "`str` is not decorated with `@node`"):
            testing.run_node(str, Context(), {})


class Conversations(Case):
    def test_declarations_have_the_format_of_the_host(self) -> None:
        messages = FromConfig("messages", default="talk")
        reads = Reads(channels=(messages, FromConfig("state"), "title"), conversation=messages)
        described = {"config": "messages", "default": "talk"}
        channels = [described, {"config": "state"}, {"channel": "title"}]
        self.assertEqual(reads.describe(), {"channels": channels, "conversation": described})
        self.assertEqual(Reads(channels=("title",)).describe(), {"channels": channels[2:]})
        declared = Reads(conversation="title").describe()
        self.assertEqual(declared, {"conversation": {"channel": "title"}})

    def test_the_configuration_names_the_conversation(self) -> None:
        reads = Reads(conversation=FromConfig("messages", default="talk"))
        for config, channel in (
            (None, "talk"),
            ({}, "talk"),
            ({"messages": None}, "talk"),
            ({"messages": "other"}, "other"),
            ({"messages": ["a", "b"]}, None),
        ):
            self.assertEqual(reads.conversation_channel(config), channel)
        self.assertEqual(Reads(conversation="title").conversation_channel(None), "title")
        self.assertIsNone(Reads(conversation=FromConfig("state")).conversation_channel(None))
        self.assertIsNone(Reads().conversation_channel(None))

    def test_a_test_gives_a_node_the_whole_conversation(self) -> None:
        @node(reads=Reads(conversation="messages"))
        def look(context: Context, messages: list | None) -> {"seen": list}:
            talk = context.conversation()
            return {"seen": [talk.channel, talk.start, talk.length]}

        context = Context()
        for document, length in (({"messages": [1, 2]}, 2), ({}, 0)):
            decision = testing.run_node(look, context, document)
            self.assertEqual(decision.update("seen"), ["messages", 0, length])
        self.assertEqual(context.extra, {}, "the context of the test stays as it is")
        context.with_conversation(Conversation("messages", 5, 7))
        decision = testing.run_node(look, context, {"messages": [1, 2]})
        self.assertEqual(decision.update("seen"), ["messages", 5, 7])

    def test_a_context_without_a_conversation_names_the_causes(self) -> None:
        with self.assertRaises(Failure) as raised:
            Context(node="agent").conversation()
        self.assertEqual(raised.exception.code, code.UNSUPPORTED)
        for cause in ("`agent`", "update Wattle", "`reads`"):
            self.assertIn(cause, raised.exception.message)
        for odd in ({"channel": "messages"}, "messages", 7):
            with self.assertRaisesRegex(Failure, "the conversation in the context is invalid"):
                Context(extra={"conversation": odd}).conversation()


class Execution(Case):
    def test_invalid_input_is_rejected_with_its_path(self) -> None:
        @node
        def sum_up(ctx: Context, rows: list[Draft]) -> None: ...

        for document, path, reason in (
            ({"rows": [{"text": "a"}, {"text": 7}]}, "rows[1].text", "must be string"),
            ({"rows": [{}]}, "rows[0]", "missing field `text`"),
            ({"rows": {}}, "rows", "must be array"),
        ):
            with self.assertRaises(Failure) as raised:
                testing.run_node(sum_up, Context(node="sum_up"), document)
            failure = raised.exception
            self.assertEqual(failure.code, code.INVALID)
            expected = f"the input of node `sum_up` is invalid at `{path}`: {reason}"
            self.assertEqual(failure.message, expected)
            self.assertEqual(failure.details, {"path": path})

    def test_the_configuration_has_a_schema_and_is_read(self) -> None:
        @node(config=Config)
        def repeat(ctx: Context, text: str) -> {"text": str}:
            return {"text": text * ctx.config(Config).times}

        schema = testing.config_schema(repeat) or {}
        self.assertEqual(schema["description"], "How to repeat.")
        self.assertEqual(schema["properties"]["times"]["description"], "How often.")
        self.assertIs(schema["additionalProperties"], False)

        def run(context: Context) -> Any:
            return testing.run_node(repeat, context, {"text": "a"}).update("text")

        self.assertEqual(run(Context()), "a")
        self.assertEqual(run(Context().with_config(None)), "a")
        self.assertEqual(run(Context().with_config({"times": 3})), "aaa")
        with self.assertRaises(Failure) as raised:
            run(Context(node="repeat").with_config({"time": 3}))
        self.assertEqual(
            raised.exception.message,
            "the configuration of node `repeat` is invalid: unknown field `time`, expected `times`",
        )

    def test_updates_that_the_return_type_does_not_have_fail(self) -> None:
        @node
        def count(ctx: Context, how: str) -> {"words": int, "note": NotRequired[str]}:
            updates = {
                "good": {"words": 1},
                "name": {"word": 1},
                "type": {"words": "1"},
                "missing": {"note": "none"},
            }
            return updates[how]

        def run(how: str) -> Decision:
            return testing.run_node(count, Context(), {"how": how})

        self.assertEqual(run("good").update("words"), 1)
        with self.assertRaisesRegex(Failure, "the updates write `word`, which the return type"):
            run("name")
        with self.assertRaisesRegex(Failure, "the return value is invalid at `words`: must be int"):
            run("type")
        with self.assertRaisesRegex(Failure, "the return value is invalid: missing field `words`"):
            run("missing")

    def test_a_node_returns_an_object(self) -> None:
        @node
        def free(ctx: Context) -> dict:
            return [1]  # type: ignore[return-value]

        with self.assertRaisesRegex(Failure, "the updates of a node are not an object"):
            testing.run_node(free, Context(), {})

    def test_values_that_are_no_json_are_named(self) -> None:
        @node
        def free(ctx: Context) -> dict:
            return {"a": float("nan")}

        with self.assertRaisesRegex(Failure, "write the updates as JSON: Out of range"):
            testing.run_node(free, Context(), {})

    def test_an_outcome_has_overwrites_targets_and_sends(self) -> None:
        outcome = Outcome({"kept": 1, "null": None}).overwrite("kept").goto("a").goto(END)
        decision = outcome.send("c", {"n": 1}, timeout_ms=2000).for_parent().decide()
        self.assertEqual([it.overwrite for it in decision.updates], [True, False])
        self.assertEqual(decision.goto, ["a", "END"])
        self.assertEqual(decision.sends[0].extra, {"timeout_ms": 2000})
        self.assertEqual(decision.extra, {"parent": True})
        with self.assertRaisesRegex(
            Failure, "overwrite channel `absent`: the updates do not write"
        ):
            Outcome({"kept": 1}).overwrite("absent").decide()

    def test_an_error_handler_gets_the_failure(self) -> None:
        self.assertIsNone(Context().error())
        error = NodeError("work", "t", "timeout", "late", {"n": 1})
        self.assertEqual(Context().with_error(error).error(), error)
        self.assertEqual(Context(extra={"error": "odd"}).error(), NodeError(message="odd"))

    def test_the_run_context_is_read_as_a_type(self) -> None:
        context = Context(context={"text": "a"})
        self.assertEqual(context.run_context(Draft), Draft("a"))
        with self.assertRaisesRegex(Failure, "the run's context is invalid: missing field `text`"):
            Context(context={}).run_context(Draft)


if __name__ == "__main__":
    unittest.main()
