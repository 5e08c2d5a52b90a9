"""Tests of the messages of the AI SDK, in both directions."""

import json
import unittest
from typing import Any

from wattle import Failure, _schema
from wattle.chat import _shown, _stored, ui
from wattle.chat.ui import CallIds, Part, Role, ToolPart, UiMessage


def user(id: str, text: str) -> Any:
    return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}


def tool(name: str, id: str, state: str) -> Any:
    part = {"type": f"tool-{name}", "toolCallId": id, "state": state, "input": {"text": "x"}}
    return {**part, "output": {"count": 0}, "errorText": "not found"}


def text(text: str) -> Any:
    return {"type": "text", "text": text}


class Parts(unittest.TestCase):
    def test_both_kinds_of_tool_parts_are_parsed(self) -> None:
        for kind in ("tool-search_image", "dynamic-tool"):
            part = {"type": kind, "toolName": "search_image", "toolCallId": "c1",
                    "state": "output-error", "input": {"count": 2}, "errorText": "no"}  # fmt: skip
            expected = ToolPart("search_image", "c1", {"count": 2}, "error", error="no")
            self.assertEqual(Part.of(part).tool, expected)
        part = {**tool("search", "c", "output-available"), "preliminary": True}
        parsed = Part.of(part).tool
        assert parsed is not None
        self.assertIsNone(parsed.status)

    def test_unknown_parts_are_ignored(self) -> None:
        for part in (
            {"type": "data-step", "data": {}},
            {"type": "tool-search_image", "state": "output-available"},
            {"type": "tool-", "toolCallId": "c1", "state": "output-available"},
            {"type": "dynamic-tool", "toolCallId": "c1", "state": "output-available"},
            7,
            {},
        ):
            self.assertEqual(Part.of(part), Part("other"))


def stored(parts: list[Any]) -> list[Any]:
    def view(call: ToolPart) -> str | None:
        if call.status == "error":
            return call.error
        return None if call.name == "hidden" else json.dumps(call.output)

    ids = CallIds()
    assert ids.unique("used") == "used"
    return ui.to_stored(parts, ids, view)


class ToStored(unittest.TestCase):
    def test_a_message_is_split_into_turns(self) -> None:
        begin = {"type": "step-start"}
        messages = stored(
            [
                begin,
                {"type": "reasoning", "text": "hm"},
                text("First."),
                tool("search", "a", "output-available"),
                begin,
                tool("load", "b", "output-error"),
                begin,
                text("Sorry."),
            ]
        )

        def call(id: str, name: str) -> Any:
            return [{"id": id, "name": name, "arguments": {"text": "x"}}]

        self.assertEqual(
            messages,
            [
                {"role": "assistant", "content": "First.", "tool_calls": call("a", "search"),
                 "reasoning": "hm"},
                {"role": "tool", "tool_call_id": "a", "name": "search", "status": "success",
                 "content": '{"count": 0}'},
                {"role": "assistant", "content": "", "tool_calls": call("b", "load")},
                {"role": "tool", "tool_call_id": "b", "name": "load", "status": "error",
                 "content": "not found"},
                {"role": "assistant", "content": "Sorry."},
            ],
        )  # fmt: skip

    def test_calls_without_a_result_or_a_view_are_left_out(self) -> None:
        messages = stored(
            [
                text("Let me see."),
                tool("search", "a", "input-available"),
                tool("search", "b", "input-streaming"),
                tool("hidden", "c", "output-available"),
            ]
        )
        self.assertEqual(messages, [{"role": "assistant", "content": "Let me see."}])
        nothing = [{"type": "step-start"}, tool("search", "a", "input-available")]
        self.assertEqual(stored(nothing), [])

    def test_calls_have_unique_ids(self) -> None:
        calls = [tool("search", id, "output-available") for id in ("a", "a", "used")]
        messages = stored([calls[0], text("and"), *calls[1:]])
        ids = [it["tool_call_id"] for it in messages if "tool_call_id" in it]
        self.assertEqual(ids, ["a", "a-2", "used-2"])

    def test_many_calls_with_one_id_are_numbered(self) -> None:
        # A client can send as many calls with one id as its message has parts.
        ids = CallIds()
        found = [ids.unique(id) for id in ("a-3", "a", "a", "a", "a-3")]
        self.assertEqual(found, ["a-3", "a", "a-2", "a-4", "a-3-2"])
        for number in range(5, 100_000):
            self.assertEqual(ids.unique("a"), f"a-{number}")


LIMITS = ui.Limits(messages=3, parts=4, text_chars=10)


def read(messages: Any) -> list[UiMessage]:
    """Reads messages, and shortens outputs to their types."""
    return ui.read(messages, LIMITS, lambda output: isinstance(output, dict))


class Reading(unittest.TestCase):
    def test_parts_are_reduced_to_what_is_stored(self) -> None:
        pending = {"type": "tool-search", "toolCallId": "c", "state": "input-available"}
        done = {**pending, "state": "output-available", "output": {"count": 1}}
        file = {"type": "file", "filename": "a.png", "mediaType": "image/png"}
        for part, expected in (
            ({"type": "text", "text": "x", "state": "done"}, None),
            ({"type": "reasoning", "text": "x"}, None),
            ({"type": "step-start"}, None),
            (pending, None),
            (done, [{**done, "output": True}]),
            ({**pending, "type": "tool-"}, []),
            ({**done, "type": "tool-"}, []),
            ({"type": "data-hint", "data": {}}, []),
            (7, []),
            ({**file, "url": "data:image/png;base64,AAAA"}, [file]),
            (
                {"type": "file", "url": "data:,x"},
                [{**file, "filename": "a file", "mediaType": "application/octet-stream"}],
            ),
        ):
            message = {"id": "a", "role": "assistant", "parts": [part], "metadata": 1}
            found = read([message, user("u", "hi")])[0].parts
            self.assertEqual(found, [part] if expected is None else expected)

    def test_messages_of_older_clients_are_read(self) -> None:
        found = read([{"role": "system", "content": "x"}, {"role": "user", "content": "y"}])
        expected = [("message-0", Role.SYSTEM, "x"), ("message-1", Role.USER, "y")]
        self.assertEqual([(it.id, it.role, it.text()) for it in found], expected)

    def test_invalid_conversations_are_refused(self) -> None:
        def assistant(*parts: Any) -> Any:
            return {"id": "b", "role": "assistant", "parts": list(parts)}

        last = "the last message must be a text of the user"
        long_id = "its id is longer than 200 characters, or has a NUL"
        for messages, why in (
            (None, "`messages` must be a list of messages"),
            ([], last),
            ([user("a", " ")], last),
            ([user("a", "hi"), assistant()], last),
            (
                [{"id": "a", "role": "robot", "parts": []}],
                "message 1: it is no message of a chat page: unknown variant `robot`, expected "
                "one of `system`, `user`, `assistant`",
            ),
            ([7], "message 1: it is no message of a chat page: it is no JSON object"),
            (
                [{**user("a", "x"), "parts": None}],
                "message 1: it is no message of a chat page: `parts` is null, expected a list",
            ),
            ([user("a", "x"), user("a", "y")], "two messages have the same id"),
            ([user("a", "x"), user("i" * 201, "x")], f"message 2: {long_id}"),
            ([user("\0", "x")], f"message 1: {long_id}"),
            (
                [user("a", "eleven long")],
                "message 1: it is longer than 10 characters; say it in fewer",
            ),
            (
                [assistant({}, {}, {}, {}, {}), user("a", "x")],
                "message 1: it has more than 4 parts",
            ),
            (
                [user(id, "x") for id in "abcd"],
                "a conversation has at most 3 messages; begin a new one",
            ),
        ):
            with self.assertRaises(Failure) as raised:
                read(messages)
            self.assertEqual((raised.exception.status(), raised.exception.message), (400, why))

    def test_a_message_is_written_and_read_with_all_fields_of_its_parts(self) -> None:
        (message,) = read([user("u", "hi")])
        message.parts.append({**tool("search", "a", "input-streaming"), "other": 1})
        written = _schema.encode(message)
        self.assertEqual(written["role"], "user")
        self.assertEqual(_schema.decode("the message", UiMessage, written), message)


def channel() -> list[Any]:
    calls = [
        {"id": "c1", "name": "save", "arguments": {"amount": 20}},
        {"id": "c2", "name": "fly", "arguments": {}},
        {"id": "c3", "name": "walk"},
    ]
    return [
        {"id": "u1", "role": "user", "content": "a taxi, 20"},
        {"id": "a1", "role": "assistant", "content": "well", "tool_calls": calls},
        {"id": "t1", "role": "tool", "tool_call_id": "c1", "name": "save", "content": "{}",
         "status": "success", "structured": {"status": "success"}},
        {"id": "t2", "role": "tool", "tool_call_id": "c2", "name": "fly",
         "content": "no wings", "status": "error", "structured": {"limit": 10}},
        {"id": "a2", "role": "assistant", "content": "saved"},
        {"id": "u2", "role": "user", "content": [{"text": "good"}, {"text": "bye"}]},
        {"id": "a3", "role": "assistant", "content": "bye"},
    ]  # fmt: skip


class Shown(unittest.TestCase):
    def test_a_message_of_the_assistant_has_tool_calls_with_results(self) -> None:
        def done(text: str) -> Any:
            return {"type": "text", "text": text, "state": "done"}

        def call(name: str, id: str, input: Any, state: str, **fields: Any) -> Any:
            head = {"type": f"tool-{name}", "toolCallId": id, "input": input, "state": state}
            return {**head, **fields}

        begin = {"type": "step-start"}
        saved = call("save", "c1", {"amount": 20}, "output-available", output={"status": "success"})
        flown = call("fly", "c2", {}, "output-error", errorText="no wings")
        walked = call("walk", "c3", None, "output-error", errorText="not completed")
        self.assertEqual(
            _shown.of_state(channel(), True, "not completed"),
            [
                UiMessage("u1", Role.USER, [text("a taxi, 20")]),
                UiMessage(
                    "a1",
                    Role.ASSISTANT,
                    [begin, done("well"), saved, flown, walked, begin, done("saved")],
                ),
                UiMessage("u2", Role.USER, [text("goodbye")]),
                UiMessage("a3", Role.ASSISTANT, [begin, done("bye")]),
            ],
        )

    def test_they_are_shown_up_to_the_last_message_of_the_user(self) -> None:
        hello = {"id": "a", "role": "assistant", "content": "hello"}
        for found, whole, ids in (
            (channel(), True, ["u1", "a1", "u2", "a3"]),
            (channel(), False, ["u1", "a1", "u2"]),
            ([hello], True, ["a"]),
            ([hello], False, []),
            ([1, {"role": 2}, hello], True, ["a"]),
            ([{"id": "t", "role": "tool", "content": "x"}], True, []),
            (None, True, []),
            ([], False, []),
        ):
            self.assertEqual([it.id for it in _shown.of_state(found, whole, "")], ids)

    def test_a_reply_is_a_last_message_of_the_model_without_tool_calls(self) -> None:
        messages = [
            {"role": "user", "content": "a taxi, 20"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "save"}]},
            {"role": "tool", "tool_call_id": "c", "content": "{}"},
            {"role": "assistant", "content": "saved"},
            {"role": 2},
        ]
        found = [_stored.has_reply(messages[:end]) for end in range(len(messages) + 1)]
        self.assertEqual(found, [True, False, False, False, True, True])
        self.assertTrue(_stored.has_reply(None))


if __name__ == "__main__":
    unittest.main()
