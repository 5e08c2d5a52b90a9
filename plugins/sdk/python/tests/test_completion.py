"""Tests of completions as messages."""

import unittest

from wattle import Message, llm
from wattle.message import OtherPart, Reasoning


class Completions(unittest.TestCase):
    def test_a_completion_becomes_a_message_with_its_id(self) -> None:
        answer = llm.Completion.of_tool_call("c", "add", {"a": 1}).with_id("m")
        answer.parts = [Reasoning("hm"), "so", *answer.parts]
        answer.extra["attempts"] = [
            {
                "provider": "p",
                "model": "large",
                "error": {"code": "unavailable", "message": "away"},
            },
            {"provider": "p", "model": "small", "tries": 1},
        ]
        stored = {
            "id": "m",
            "role": "assistant",
            "content": "so",
            "tool_calls": [{"id": "c", "name": "add", "arguments": {"a": 1}}],
            "reasoning": "hm",
        }
        self.assertEqual(answer.to_stored(), stored)
        self.assertEqual(answer.into_message(), Message("assistant", answer.parts, {"id": "m"}))
        first, second = answer.attempts()
        self.assertEqual((str(first.error), second.error, second.tries), ("away", None, 1))
        self.assertTrue(answer.is_answer())
        self.assertFalse(llm.Completion([Reasoning("hm")]).is_answer())

    def test_stored_calls_have_unique_ids_and_the_state_of_the_provider(self) -> None:
        answer = llm.Completion.of_tool_call("c", "add", {"a": 1})
        state = {"type": "provider_state", "data": "x"}
        answer.parts += [OtherPart("audio"), OtherPart(state)]
        answer.extra["call_ids"] = ["c-2"]
        stored = answer.to_stored()
        self.assertEqual(stored["tool_calls"][0]["id"], "c-2")
        self.assertEqual(stored["provider_state"], state)


if __name__ == "__main__":
    unittest.main()
