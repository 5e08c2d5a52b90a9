"""Tests of threads and runs of handlers: ids of clients, logs, and requests that arrive twice."""

import unittest
from typing import Any
from unittest.mock import patch

from wattle import Failure, Image, code, llm, runs
from wattle.message import OtherPart
from wattle.testing import FakeHost

RUN = runs.RunRef("t", "r")


def ended(run_id: str) -> runs.EndedRun:
    return runs.EndedRun(runs.RunRef("t", run_id), runs.Outcome.completed())


class Threads(unittest.TestCase):
    def test_threads_of_a_graph_are_found(self) -> None:
        with FakeHost().thread(runs.Thread("t", "notes", "idle")):
            for graph, id, is_found in (
                ("notes", "t", True),
                ("orders", "t", False),
                ("notes", "", False),
            ):
                found = runs.find(graph, id)
                self.assertEqual(found is not None, is_found, f"`{id}` of `{graph}`")

    def test_an_id_that_the_host_refuses_is_that_of_no_thread(self) -> None:
        for refusal in (code.INVALID, code.NOT_FOUND):
            with patch.object(runs, "thread", side_effect=Failure(refusal, "no")):
                self.assertIsNone(runs.find("notes", "t"))
        limit = Failure(code.LIMIT, "no")
        with patch.object(runs, "thread", side_effect=limit), self.assertRaises(Failure):
            runs.find("notes", "t")

    def test_only_a_running_thread_has_an_active_run(self) -> None:
        for status, run_id, active in (
            ("running", "r", RUN),
            ("running", None, None),
            ("idle", "r", None),
            ("interrupted", "r", None),
            ("error", "r", None),
        ):
            thread = runs.Thread("t", "notes", status, run_id=run_id)
            self.assertEqual(thread.is_running(), status == "running", status)
            self.assertEqual(thread.is_interrupted(), status == "interrupted", status)
            self.assertEqual(thread.active_run(), active, status)

    def test_a_cancelled_run_is_awaited(self) -> None:
        cancelled = runs.Outcome.cancelled()
        with FakeHost().run_ends(lambda run: runs.EndedRun(run, cancelled)) as host:
            stopped = runs.cancel_and_wait(RUN)
        self.assertEqual((stopped.run, stopped.outcome), (RUN, cancelled))
        self.assertEqual(host.cancelled, [RUN])

    def test_a_thread_is_deleted_if_it_exists(self) -> None:
        with FakeHost().thread(runs.Thread("t", "notes", "idle")):
            runs.delete_thread_if_any("t")
            self.assertIsNone(runs.find("notes", "t"))
        with patch.object(runs, "delete_thread", side_effect=Failure.not_found("gone")):
            runs.delete_thread_if_any("t")
        busy = Failure(code.BUSY, "running")
        with patch.object(runs, "delete_thread", side_effect=busy), self.assertRaises(Failure):
            runs.delete_thread_if_any("t")


STARTED = {"type": "run_started", "graph": "notes", "reason": "input"}
ENDED = {"type": "run_ended", "status": "completed"}


def event(seq: int, run: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"seq": seq, "at_ms": 5, "run": run, **more}


class Logs(unittest.TestCase):
    def test_all_pages_are_read_and_grouped_by_run(self) -> None:
        host = FakeHost()
        for seq in range(1, 2 * runs.PAGE_EVENTS + 2):
            host.event("t", event(seq, "a", ENDED if seq == 2 else STARTED))
        last = 2 * runs.PAGE_EVENTS + 2
        host.event("t", event(last, "b", STARTED)).event("t", event(last + 1, "a", ENDED))
        with host:
            events = runs.all_events("t") or []
            rest = runs.all_events("t", last) or []
            self.assertIsNone(runs.all_events("nobody"))
        self.assertEqual([it.seq for it in events], list(range(1, last + 2)))
        logs = runs.by_run(events)
        sizes = [(it.id, len(it.events)) for it in logs]
        self.assertEqual(sizes, [("a", last - 1), ("b", 1), ("a", 1)])
        ends = [it.ended() for it in logs]
        self.assertEqual([end and end[0].seq for end in ends], [2, None, last + 1])
        self.assertEqual([it.run for it in rest], ["a"])

    def test_a_function_of_the_app_reads_events_which_must_have_numbers(self) -> None:
        def read(event: Any) -> runs.Event:
            return runs.Event.read({**event, "run": "shown"})

        with FakeHost().event("t", event(1, "a", STARTED)) as host:
            (shown,) = runs.all_events("t", 0, read) or []
            self.assertEqual(shown.run, "shown")
            host.event("t", {"type": "odd"})
            with self.assertRaisesRegex(Failure, "the number of an event is invalid"):
                runs.all_events("t", 0, read)


def host_of(status: str, stored: int | None = None) -> tuple[FakeHost, list[str]]:
    """Returns a host with the thread `t`, whose runs complete, and the runs that were awaited."""
    awaited: list[str] = []

    def script(run: runs.RunRef) -> runs.EndedRun:
        awaited.append(run.run_id)
        return ended(run.run_id)

    thread = runs.Thread("t", "review", status, {"stored": stored}, run_id="newest")
    return FakeHost().thread(thread).run_ends(script), awaited


def once(host: FakeHost, graph: str = "review") -> runs.ResumeOutcome[int]:
    with host:
        resume = runs.Resume("t").answer(7)
        return resume.resume_once(graph, lambda thread: thread.channel("stored", int))


def completion_of(function: str, result: Any) -> llm.Completion | None:
    """Returns the completion of a call in the log."""
    head = {"seq": 1, "at_ms": 2, "run": "r", "type": "called", "task": "t", "node": "n"}
    rest = {"call": 3, "request": {"route": "chat"}, "result": result, "duration_us": 7}
    called = runs.Event.read({**head, **rest, "function": function}).kind
    assert isinstance(called, runs.Called)
    return called.completion()


class Completions(unittest.TestCase):
    def test_completions_in_the_log_are_typed(self) -> None:
        call = {"id": "c", "name": "add", "arguments": '{"a": '}
        state = {"type": "provider_state", "data": "x"}
        down = {"code": "unavailable", "message": "down", "retryable": True}
        logged = {
            "id": "run--1-0",
            "parts": [
                {"reasoning": "h"},
                {"reasoning": "m"},
                {"text": "s"},
                {"text": "o"},
                {"tool_call": call},
                {"image": {"source": {"url": "https://a/b.png"}, "media_type": "image/png"}},
                {"other": state},
            ],
            "structured": {"n": 1},
            "finish_reason": "tool_calls",
            "usage": {"input_tokens": 3, "output_tokens": 2, "reasoning_tokens": None, "cost": 1},
            "model": "small-2",
            "attempts": [
                {"provider": "p", "model": "large", "tries": 3, "error": down},
                {"provider": "p", "model": "small", "tries": 1},
            ],
        }
        for function in ("llm.complete", "llm.stream"):
            found = completion_of(function, {"Ok": logged})
            assert found is not None
            self.assertEqual((found.id(), found.model), ("run--1-0", "small-2"))
            self.assertEqual((found.reasoning(), found.text()), ("hm", "so"))
            self.assertEqual(found.tool_calls()[0].arguments, '{"a": ')
            expected = [Image.url("https://a/b.png", "image/png"), OtherPart(state)]
            self.assertEqual(found.parts[-2:], expected)
            self.assertEqual(found.structured, {"n": 1})
            self.assertEqual(found.finish_reason, llm.FinishReason.TOOL_CALLS)
            self.assertEqual(found.usage, llm.Usage(3, 2, extra={"cost": 1}))
            tried = [(it.tries, it.error is not None) for it in found.attempts()]
            self.assertEqual(tried, [(3, True), (1, False)])
        withheld = {"parts": [], "finish_reason": {"other": "spam"}}
        found = completion_of("llm.complete", {"Ok": withheld})
        assert found is not None
        self.assertEqual(found.finish_reason, "spam")

    def test_only_successful_model_calls_have_a_completion(self) -> None:
        output = {"Ok": {"parts": [{"text": "hi"}]}}
        self.assertEqual(completion_of("llm.complete", output), llm.Completion.of_text("hi"))
        for function, result in (
            ("tools.call", output),
            ("llm.complete", {"Err": {"code": "timeout", "message": "late"}}),
            ("llm.complete", {"Ok": {"parts": "hi"}}),
            ("llm.complete", {"Ok": {"parts": [{"text": 1}]}}),
            ("llm.complete", {"Ok": {"finish_reason": "spam"}}),
            ("llm.complete", {"Ok": None}),
        ):
            self.assertIsNone(completion_of(function, result))


class RequestsThatArriveTwice(unittest.TestCase):
    def test_only_an_interrupted_thread_is_resumed(self) -> None:
        resumed: runs.ResumeOutcome[int] = runs.ResumeOutcome("ended", run=ended("run-1"))
        done = runs.ResumeOutcome("done", result=3)
        for status, stored, graph, expected in (
            ("interrupted", None, "review", resumed),
            ("interrupted", 3, "review", done),
            ("interrupted", None, "other", runs.ResumeOutcome("not_interrupted")),
            ("idle", 3, "review", done),
            ("idle", None, "review", runs.ResumeOutcome("not_interrupted")),
            ("error", None, "review", runs.ResumeOutcome("not_interrupted")),
            ("running", 3, "review", done),
            ("running", None, "review", runs.ResumeOutcome("busy")),
        ):
            with self.subTest(f"{status} {stored} {graph}"):
                host, _ = host_of(status, stored)
                self.assertEqual(once(host, graph), expected)
                answers = [it.answers for it in host.resumed]
                self.assertEqual(answers, [[("", 7)]] if expected is resumed else [])
        self.assertEqual(once(FakeHost()), runs.ResumeOutcome("not_interrupted"))

    def test_the_active_run_of_another_request_is_awaited(self) -> None:
        named = Failure(code.BUSY, "busy", details={"run_id": "other"})
        for failure, run_ids in (
            (named, ["other", "run-1"]),
            (Failure(code.BUSY, "busy"), ["run-1"]),
            (Failure.conflict("answered"), ["run-1"]),
        ):
            host, awaited = host_of("interrupted")
            failures = [failure]

            def script(_: runs.Resume, failures: list[Failure] = failures) -> None:
                if failures:
                    raise failures.pop()

            self.assertEqual(once(host.resumes(script)).run, ended("run-1"))
            self.assertEqual(awaited, run_ids)
        host, awaited = host_of("running")
        self.assertEqual(once(host).kind, "busy")
        self.assertEqual(awaited, ["newest"] * 5)

    def test_failures_of_resumes_have_outcomes(self) -> None:
        for failure_code, kind in (
            (code.BUSY, "busy"),
            (code.CONFLICT, "busy"),
            (code.NOT_FOUND, "not_interrupted"),
            (code.EXPIRED, "not_interrupted"),
            (code.INVALID, "refused"),
            (code.LIMIT, None),
        ):
            failure = Failure(failure_code, "why")

            def script(_: runs.Resume, failure: Failure = failure) -> None:
                raise failure

            host, _ = host_of("interrupted")
            host.resumes(script)
            if kind is None:
                with self.assertRaises(Failure) as raised:
                    once(host)
                self.assertIs(raised.exception, failure)
            else:
                outcome = once(host)
                self.assertEqual(outcome.kind, kind)
                self.assertIs(outcome.failure, failure if kind == "refused" else None)

    def test_the_other_run_may_fail_to_be_awaited(self) -> None:
        def script(_: runs.Resume) -> None:
            raise Failure(code.BUSY, "busy", details={"run_id": "other"})

        host = FakeHost().thread(runs.Thread("t", "review", "interrupted")).resumes(script)
        self.assertEqual(once(host).kind, "busy")
        self.assertEqual([it.level for it in host.logged], ["debug"] * 5)


if __name__ == "__main__":
    unittest.main()
