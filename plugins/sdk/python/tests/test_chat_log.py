"""Tests of the steps and the message of a run, from the log of its thread."""

import unittest
from collections.abc import Sequence
from typing import Any

from wattle import _json
from wattle.chat import Agent, Step
from wattle.runs import Event

AGENT = Agent.DEFAULT


def run(*events: Any) -> list[Event]:
    """Reads the events of the run `r`, one second apart."""
    heads = ({"seq": seq, "at_ms": seq * 1_000, "run": "r"} for seq in range(1, len(events) + 1))
    return [AGENT.read({**event, **head}) for event, head in zip(events, heads, strict=True)]


def deltas(turn: int, text: str, **fields: Any) -> Any:
    """Deltas of reasoning and text."""
    pieces = [{"kind": "reasoning", "text": "hm"}, {"kind": "text", "text": text}]
    head = {"type": "streamed", "task": f"a{turn}", "node": "agent", "call": 1}
    return {**head, "deltas": pieces, **fields}


def completed(turn: int, result: Any, **fields: Any) -> Any:
    """The end of a model call."""
    head = {"type": "called", "task": f"a{turn}", "node": "agent", "call": 1}
    return {
        **head,
        "function": "llm.complete",
        "request": {},
        "result": result,
        "duration_us": 1,
        **fields,
    }


def completion(text: str) -> Any:
    """The result of a model call with reasoning and text."""
    return {"Ok": {"parts": [{"reasoning": "hm"}, {"text": text}]}}


def requested(turn: int, *calls: tuple[str, str, Any]) -> Any:
    """The end of a model turn that requests tool calls: ids, names and arguments."""
    found = [{"id": id, "name": name, "arguments": input} for id, name, input in calls]
    message = {"role": "assistant", "content": "", "tool_calls": found}
    writes = [{"channel": "other", "value": 1}, {"channel": "messages", "value": message}]
    return {"type": "task_finished", "task": f"a{turn}", "node": "agent", "writes": writes}


def called(turn: int, tool: str, call: int, scope: Sequence[int] = (), **fields: Any) -> Any:
    """The start of a tool call. With a scope, a tool makes the call."""
    head = {"type": "call_started", "task": f"t{turn}", "scope": list(scope), "call": call}
    return {**head, "function": "tools.call", "summary": f"notes/{tool}", **fields}


def returned(turn: int, tool: str, call: int, result: Any, scope: Sequence[int] = ()) -> Any:
    """The end of a tool call."""
    return {
        "type": "called",
        "task": f"t{turn}",
        "node": "tools",
        "scope": list(scope),
        "call": call,
        "function": "tools.call",
        "request": {},
        "result": result,
        "duration_us": 1_500_000,
        "summary": f"notes/{tool}",
    }


def results(turn: int, *results: tuple[str, str]) -> Any:
    """The end of the tool calls of a turn, with results for the model: ids of calls and texts."""
    messages = [{"role": "tool", "tool_call_id": id, "content": text} for id, text in results]
    writes = [{"channel": "messages", "value": messages}]
    return {"type": "task_finished", "task": f"t{turn}", "node": "tools", "writes": writes}


def good(output: Any) -> Any:
    """The result of a tool that succeeded."""
    updates = [{"channel": "notes", "value": []}]
    content = [{"text": "for the model"}]
    return {"Ok": {"content": content, "structured": output, "updates": updates}}


def bad(text: str) -> Any:
    """A result that a model reads as an error."""
    return {"Ok": {"content": [{"text": text}], "is_error": True}}


def recovery() -> Any:
    """The continuation of the run after a restart of the host."""
    return {"type": "run_started", "graph": "notes", "reason": "recovery"}


def ended(status: str) -> Any:
    """The end of the run."""
    return {"type": "run_ended", "status": status}


class Steps(unittest.TestCase):
    def check(self, events: Sequence[Any], *expected: Any) -> list[Step]:
        """Checks id, call id, status, input, output or error, and duration of each step."""
        steps = AGENT.steps(run(*events))
        found = [
            [it.id, it.call_id, it.status.value, it.input, it.error or it.output, it.duration_ms]
            for it in steps
        ]
        self.assertEqual(found, list(expected))
        return steps

    def test_steps_run_from_their_calls_to_their_results(self) -> None:
        plain = {"Ok": {"content": [{"text": "a"}, {"text": "b"}]}}
        down = {"Err": {"code": "timeout", "message": "too slow"}}
        lost = "the run ended before the step was finished"
        for end, status, output, ms in (
            ([], "RUNNING", None, None),
            ([returned(0, "search", 0, good([7]))], "SUCCESS", [7], 1500),
            ([returned(0, "search", 0, plain)], "SUCCESS", "ab", 1500),
            ([returned(0, "search", 0, bad("none"))], "ERROR", "none", 1500),
            ([returned(0, "search", 0, down)], "ERROR", "too slow", 1500),
            ([ended("cancelled")], "CANCELLED", "the step was cancelled", 1000),
            ([ended("failed")], "ERROR", lost, 1000),
        ):
            events = [requested(0, ("c", "search", {"n": 2})), called(0, "search", 0), *end]
            self.check(events, ["t0:0", "c", status, {"n": 2}, output, ms])

    def test_steps_have_the_events_that_changed_them(self) -> None:
        events = [requested(0, ("c", "search", {})), called(0, "search", 0)]
        (step,) = AGENT.steps(run(*events))
        self.assertEqual((step.tool, step.seq, step.started_ms), ("search", 2, 2_000))
        self.assertEqual((step.last_seq(), step.ended_seq, step.ended_ms), (2, None, None))
        (step,) = AGENT.steps(run(*events, returned(0, "search", 0, good({}))))
        self.assertEqual((step.last_seq(), step.ended_seq, step.ended_ms), (3, 3, 3_000))
        self.assertEqual(step.writes[0].channel, "notes")
        self.assertFalse(step.is_refused)

    def test_calls_that_no_tool_executes_are_refused_steps(self) -> None:
        calls = (("a", "search", '{"n": '), ("b", "search", {"n": 2}), ("c", "fly", {}))
        off = ("a", "the arguments break off")
        steps = self.check(
            [
                requested(0, *calls),
                called(0, "search", 0),
                returned(0, "search", 0, good(1)),
                results(0, off, ("b", "short"), ("c", "no tool `fly`")),
            ],
            ["t0:0", "b", "SUCCESS", {"n": 2}, 1, 1500],
            ["r:a", "a", "ERROR", '{"n": ', "the arguments break off", 0],
            ["r:c", "c", "ERROR", {}, "no tool `fly`", 0],
        )
        self.assertEqual([step.is_refused for step in steps], [False, True, True])

    def test_calls_by_reference_are_those_of_their_tools(self) -> None:
        calls = (("a", "maps/search", 1), ("b", "notes/search", 2), ("c", "notes/fly", 3))
        steps = self.check(
            [
                requested(0, *calls),
                called(0, "search", 0),
                called(0, "search", 1, summary="maps/search"),
                returned(0, "search", 0, good(7)),
                results(0, ("a", "short"), ("b", "short"), ("c", "no tool `notes/fly`")),
            ],
            ["t0:0", "b", "SUCCESS", 2, 7, 1500],
            ["t0:1", "a", "RUNNING", 1, None, None],
            ["r:c", "c", "ERROR", 3, "no tool `notes/fly`", 0],
        )
        self.assertEqual([step.tool for step in steps], ["search", "search", "fly"])

    def test_calls_of_one_turn_have_their_own_inputs(self) -> None:
        self.check(
            [
                requested(0, ("a", "search", 1), ("b", "fly", 2), ("c", "search", 3)),
                called(0, "search", 0),
                called(0, "search", 1),
                requested(1),
                called(1, "search", 0),
            ],
            ["t0:0", "a", "RUNNING", 1, None, None],
            ["t0:1", "c", "RUNNING", 3, None, None],
            ["t1:0", None, "RUNNING", None, None, None],
        )

    def test_a_call_that_starts_again_after_a_restart_is_one_step(self) -> None:
        call, end = called(0, "search", 0), returned(0, "search", 0, good(1))
        events = [requested(0, ("c", "search", {})), call, recovery(), call, end]
        self.check(events, ["t0:0", "c", "SUCCESS", {}, 1, 1500])

    def test_a_call_that_succeeds_after_a_failed_attempt_has_no_error(self) -> None:
        call, down = called(0, "search", 0), {"Err": {"code": "timeout", "message": "too slow"}}
        first, second = (returned(0, "search", 0, result) for result in (down, good(1)))
        events = [requested(0, ("c", "search", {})), call, first, call, second]
        (step,) = self.check(events, ["t0:0", "c", "SUCCESS", {}, 1, 1500])
        self.assertIsNone(step.error)

    def test_calls_of_tools_are_no_steps(self) -> None:
        inner = [called(0, "load", 0, [0]), returned(0, "load", 0, good(1), [0])]
        self.check(inner)
        self.assertFalse(any(AGENT.is_progress(event) for event in run(*inner)))

    def test_progress_begins_or_ends_a_run_or_a_step(self) -> None:
        for event, is_progress in (
            (recovery(), True),
            (requested(0), False),
            (called(0, "search", 0), True),
            (returned(0, "search", 0, bad("none")), True),
            (results(0, ("c", "none")), False),
            (ended("completed"), True),
        ):
            self.assertEqual(AGENT.is_progress(run(event)[0]), is_progress, event)


BEGIN = {"type": "step-start"}
THOUGHT = {"type": "reasoning", "text": "hm", "state": "done"}


def text(text: str) -> Any:
    return {"type": "text", "text": text, "state": "done"}


def tool(name: str, id: str, state: str, input: Any, **fields: Any) -> Any:
    return {"type": f"tool-{name}", "toolCallId": id, "state": state, "input": input, **fields}


def failed(name: str, id: str, input: Any, error: str) -> Any:
    return tool(name, id, "output-error", input, errorText=error)


def length(output: Any) -> int:
    """Returns the output of a tool as the app stores it."""
    return len(_json.write("the output", output))


ASKED = (
    completed(0, completion("First.")),
    requested(0, ("c", "search", {})),
    called(0, "search", 0),
)


class Messages(unittest.TestCase):
    def check(self, events: Sequence[Any], *expected: Any) -> None:
        """Checks the parts of the message of a run. Outputs are stored as their lengths."""
        log = run(*events)
        message = AGENT.message(log, AGENT.steps(log), length)
        assert message is not None
        self.assertEqual((message.id, message.role), ("msg_r", "assistant"))
        self.assertEqual(message.parts, list(expected))

    def test_a_run_is_one_message_with_its_steps(self) -> None:
        self.check(
            [
                deltas(0, "Let me "),
                completed(0, completion("Let me see.")),
                requested(0, ("c", "search", {"n": 2})),
                called(0, "search", 0),
                returned(0, "search", 0, good({"count": 1})),
                results(0, ("c", "short")),
                deltas(1, "Done."),
                completed(1, completion("Done.")),
                requested(1),
                ended("completed"),
            ],
            BEGIN,
            THOUGHT,
            text("Let me see."),
            tool("search", "c", "output-available", {"n": 2}, output=11),
            BEGIN,
            THOUGHT,
            text("Done."),
        )

    def test_output_before_the_end_of_a_run_is_kept(self) -> None:
        events = [deltas(0, "In the mid"), ended("cancelled")]
        self.check(events, BEGIN, THOUGHT, text("In the mid"))
        shown = (BEGIN, THOUGHT, text("First."))
        for status, error in (
            ("cancelled", "the step was cancelled"),
            ("failed", "the run ended before the step was finished"),
        ):
            self.check([*ASKED, ended(status)], *shown, failed("search", "c", {}, error))
        # The tool has not begun.
        step = failed("search", "c", {}, "the step was cancelled")
        self.check([*ASKED[:2], ended("cancelled")], *shown, step)

    def test_calls_of_an_active_run_are_pending(self) -> None:
        # The second log ends before the tool begins.
        for events in (ASKED, ASKED[:2], [*ASKED, recovery()]):
            step = tool("search", "c", "input-available", {})
            self.check(events, BEGIN, THOUGHT, text("First."), step)

    def test_failed_calls_have_their_errors(self) -> None:
        self.check(
            [
                completed(0, completion("")),
                requested(0, ("a", "fly", {}), ("b", "search", {})),
                called(0, "search", 0),
                returned(0, "search", 0, bad("none")),
                results(0, ("a", "no tool `fly`"), ("b", "none")),
            ],
            BEGIN,
            THOUGHT,
            failed("fly", "a", {}, "no tool `fly`"),
            failed("search", "b", {}, "none"),
        )

    def test_results_in_the_conversation_replace_missing_steps(self) -> None:
        asked = requested(0, ("a", "fly", {}))
        log = run(completed(0, completion("")), asked, results(0, ("a", "no tool `fly`")))
        message = AGENT.message(log, [], lambda output: output)
        assert message is not None
        self.assertEqual(message.parts[2]["errorText"], "no tool `fly`")

    def test_repeated_output_appears_once(self) -> None:
        again = {"type": "call_started", "task": "a0", "call": 1, "function": "llm.stream"}
        again["summary"] = "x"
        restart = deltas(0, "", deltas=[{"kind": "restart"}, {"kind": "text", "text": "Hello"}])
        for between in (recovery(), again):
            events = [deltas(0, "Hel"), between, deltas(0, "Hello")]
            self.check(events, BEGIN, THOUGHT, text("Hello"))
        self.check([deltas(0, "Hel"), restart], BEGIN, text("Hello"))

    def test_an_unreadable_call_is_shown_before_the_repeated_one(self) -> None:
        call = {"id": "a", "name": "search", "arguments": '{"n": '}
        parts = [{"text": "One."}, {"tool_call": call}]
        unreadable = "the arguments of the call are not valid JSON"
        self.check(
            [
                completed(0, {"Ok": {"parts": parts}}, call=0),
                completed(0, completion("Two.")),
                requested(0, ("b", "search", {"n": 2})),
                called(0, "search", 0),
                returned(0, "search", 0, good(7)),
            ],
            BEGIN,
            text("One."),
            failed("search", "a", '{"n": ', unreadable),
            BEGIN,
            THOUGHT,
            text("Two."),
            tool("search", "b", "output-available", {"n": 2}, output=1),
        )

    def test_calls_stay_if_the_agent_ends_without_a_model_call(self) -> None:
        end = [returned(0, "search", 0, good(7)), results(0, ("c", "7"))]
        at_limit = {**requested(1), "writes": []}
        step = tool("search", "c", "output-available", {}, output=1)
        events = [*ASKED, *end, at_limit, ended("completed")]
        self.check(events, BEGIN, THOUGHT, text("First."), step)

    def test_a_run_without_output_has_no_message(self) -> None:
        down = {"Err": {"code": "unavailable", "message": "down"}}
        for events in (
            [completed(0, down), ended("failed")],
            [],
            [deltas(0, "for a tool", scope=[0])],
        ):
            self.assertIsNone(AGENT.message(run(*events), [], length))


if __name__ == "__main__":
    unittest.main()
