"""Tests of the examples on pages and in the documentation of the modules."""

import doctest
import importlib
import pkgutil
import re
import unittest
from pathlib import Path
from typing import Any

import wattle
from wattle import Context, Failure, ToolOutput, llm
from wattle._registry import separate_plugin
from wattle.testing import FakeHost, run_node

SDK = Path(__file__).parent.parent

DOCS = SDK.parents[2] / "host/docs"

AGENTS = DOCS / "agents.md"

PAGES = [SDK / "README.md", AGENTS, DOCS / "first-app.md"]

WITH_BINDINGS = ("wattle._wire", "wattle._export", "wattle.__main__")
"""Modules that need the bindings of a component, and the command."""

MODULES = [
    module.name
    for module in pkgutil.walk_packages(wattle.__path__, "wattle.")
    if not module.name.startswith(WITH_BINDINGS)
]


def examples_of(page: Path) -> list[str]:
    """Returns the examples of a page."""
    text = page.read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_example(page: Path, number: int, example: str) -> dict[str, Any]:
    """Runs an example as a module. Returns what it defines."""
    names: dict[str, Any] = {"__name__": f"example_{number}"}
    with separate_plugin():
        exec(compile(example, str(page), "exec"), names)  # noqa: S102
    return names


class Examples(unittest.TestCase):
    def test_examples_of_the_pages_run(self) -> None:
        for page in PAGES:
            examples = examples_of(page)
            self.assertGreater(len(examples), 0, page)
            for number, example in enumerate(examples):
                with self.subTest(page=page.name, number=number):
                    self.run_cases(run_example(page, number, example))

    def run_cases(self, names: dict[str, object]) -> None:
        """Runs the test cases that an example defines."""
        for case in names.values():
            if isinstance(case, type) and issubclass(case, unittest.TestCase):
                result = unittest.TestResult()
                unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
                self.assertEqual((result.testsRun, result.errors, result.failures), (1, [], []))

    def test_examples_of_the_modules_run(self) -> None:
        tried = 0
        for name in ["wattle", *MODULES]:
            with self.subTest(name):
                result = doctest.testmod(importlib.import_module(name))
                self.assertEqual(result.failed, 0)
                tried += result.attempted
        self.assertGreater(tried, 10)


class Agent(unittest.TestCase):
    """The agent of a page."""

    def setUp(self) -> None:
        [example] = examples_of(AGENTS)
        names = run_example(AGENTS, 0, example)
        self.ask_model, self.call_tools = names["ask_model"], names["call_tools"]

    def turn(self, host: FakeHost, node: Any, messages: list[Any]) -> list[str]:
        """Runs a node, and adds the messages that it writes. Returns the nodes that run next."""
        with host:
            decision = run_node(node, Context(), {"messages": messages})
        messages.extend(decision.update("messages"))
        return decision.goto

    def test_it_calls_tools_until_the_completion_has_no_call(self) -> None:
        def lost(_: Any) -> ToolOutput:
            raise Failure("denied", "add a line to wattle.toml")

        names = ["refund", "find_order", "lost"]
        calls = [llm.Completion.of_tool_call(name, name, {}).parts[0] for name in names]
        completions = iter([llm.Completion(calls), llm.Completion.of_text("It is on its way.")])
        host = FakeHost().llm(lambda _: next(completions)).answer(False)
        host.tool("refund", lambda _: ToolOutput.text("refunded"))
        host.tool("find_order", lambda _: ToolOutput.text("order 7")).tool("lost", lost)
        messages: list[Any] = [{"role": "user", "content": "Where is my order?"}]
        self.assertEqual(self.turn(host, self.ask_model, messages), ["call_tools"])
        self.assertEqual([tool.name for tool in host.llm_requests[0].tools], names)
        self.turn(host, self.call_tools, messages)
        self.assertEqual(self.turn(host, self.ask_model, messages), [])
        self.assertEqual(host.questions[0].payload["tool"], "refund")
        self.assertEqual([call.call_id for call in host.tool_calls], ["find_order", "lost"])
        written = [(message.get("status"), message["content"]) for message in messages[2:]]
        expected = [
            ("error", "a person refused the call"),
            ("success", "order 7"),
            ("error", "the call failed: denied"),
            (None, "It is on its way."),
        ]
        self.assertEqual(written, expected)

    def test_it_closes_the_calls_of_a_cancelled_run(self) -> None:
        host = FakeHost().llm(lambda _: llm.Completion.of_text("Hello."))
        calls = [{"id": "c", "name": "refund", "arguments": {}}]
        asked = {"role": "assistant", "content": "", "tool_calls": calls}
        messages: list[Any] = [asked, {"role": "user", "content": "Hello"}]
        self.turn(host, self.ask_model, messages)
        self.assertEqual((messages[2]["tool_call_id"], messages[2]["status"]), ("c", "error"))
        self.assertEqual(host.llm_requests[0].extra["history"]["append"], [messages[2]])


class Names(unittest.TestCase):
    def test_each_listed_name_exists(self) -> None:
        for name in ["wattle", *MODULES]:
            module = importlib.import_module(name)
            for listed in getattr(module, "__all__", []):
                self.assertTrue(hasattr(module, listed), f"{name}.{listed}")


if __name__ == "__main__":
    unittest.main()
