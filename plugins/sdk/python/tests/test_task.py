"""Tests of structured tasks: which candidates get which requests, and which failure is reported."""

import unittest
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from wattle import Failure, code, llm
from wattle.testing import FakeHost

TASK = llm.Task("plan", max_output_tokens=8_192, timeout_ms=60_000, retries=2)


@dataclass
class Answer:
    number: int


def host_of(results: Iterable[llm.Completion | Failure] = ()) -> FakeHost:
    """Returns a host with two candidates.

    They return these results in turn, and then the number 2.
    """
    left = list(results)

    def script(_: llm.Request) -> llm.Completion:
        result = left.pop(0) if left else number(2)
        if isinstance(result, Failure):
            raise result
        return result

    info = llm.RouteInfo("google", "large", has_fallback=True)
    return FakeHost().route("plan", info).llm(script)


def run(host: FakeHost) -> llm.Checked[int]:
    """Runs a task that requires an even number."""

    def check(answer: Answer) -> int:
        if answer.number % 2:
            raise llm.Refusal(f"{answer.number} is odd")
        return answer.number

    with host:
        return TASK.document("Be strict.", "Give one.", Answer, check)


def refuse(_: Any) -> int:
    raise llm.Refusal("never")


def number(number: int) -> llm.Completion:
    return llm.Completion.of_json({"number": number})


def asked(host: FakeHost) -> list[int | None]:
    """Returns the candidate of each request."""
    return [request.candidate for request in host.llm_requests]


def tried(model: str, tries: int) -> list[dict[str, Any]]:
    """Returns attempts as the host reports them."""
    return [{"provider": "google", "model": model, "tries": tries}]


def away(tries: int | None = None) -> Failure:
    details = None if tries is None else {"attempts": tried("pro", tries)}
    return Failure.unavailable("away", details=details)


def wrong_shape() -> Failure:
    """Returns the failure of a completion that violates the schema."""
    details = {"answer": "{}", "attempts": tried("pro", 1)}
    return Failure.invalid(
        "did not answer in the wanted shape:\n`/number` is text", details=details
    )


class Requests(unittest.TestCase):
    def test_requests_have_the_limits_and_the_schema_of_the_task(self) -> None:
        host = host_of([number(4)])
        self.assertEqual(run(host).value, 4)
        (request,) = host.llm_requests
        limits = (request.route, request.max_output_tokens, request.timeout_ms)
        self.assertEqual(limits, ("plan", 8_192, 60_000))
        attempt = (request.candidate, request.retries, request.repair)
        self.assertEqual(attempt, (0, 2, False))
        assert request.response_schema is not None
        self.assertEqual(request.response_schema.name, "plan")
        self.assertEqual(request.response_schema.schema["required"], ["number"])
        self.assertEqual(request.text(), "Be strict.\nGive one.")

    def test_a_task_can_have_a_route_a_temperature_and_a_refusal_of_its_own(self) -> None:
        refusal = "No:\n{{reasons}}\n"
        other = llm.Task("other", route="plan", temperature=0.5, refusal=refusal, retries=1)
        host = host_of()
        with host, self.assertRaisesRegex(Failure, "^no model could do task `other`: "):
            other.document("", "Give one.", Answer, refuse)
        first, second = host.llm_requests[:2]
        self.assertEqual((first.route, first.temperature, first.timeout_ms), ("plan", 0.5, None))
        assert first.response_schema is not None
        self.assertEqual(first.response_schema.name, "other")
        self.assertEqual(second.text(), "\nGive one.\n\nNo:\n- never")

    def test_a_wrong_template_of_a_refusal_fails_before_the_first_request(self) -> None:
        for template in ("No.", "No: {{why}}", "No: {{reasons"):
            with self.subTest(template), host_of() as host:
                with self.assertRaises(Failure) as raised:
                    llm.Task("plan", refusal=template).text("", "", str)
                self.assertEqual(raised.exception.code, code.INTERNAL)
                self.assertEqual(host.llm_requests, [])

    def test_reasons_of_the_last_completion_are_in_the_next_request(self) -> None:
        host = host_of([number(3), wrong_shape()])
        self.assertEqual(run(host).value, 2)
        _, second, third = (request.text() for request in host.llm_requests)
        expected = (
            "Be strict.\nGive one.\n\nAn earlier answer was refused for these reasons:\n- 3 is odd"
            "\nAnswer again, whole, with all of them corrected."
        )
        self.assertEqual(second, expected)
        self.assertIn("- `/number` is text\n", third)
        self.assertNotIn("3 is odd", third)
        host = host_of([number(1), away(), away()])
        run(host)
        self.assertEqual(asked(host), [0, 0, 0, 1])
        self.assertIn("1 is odd", host.llm_requests[3].text())

    def test_reasons_are_bounded(self) -> None:
        def check(_: Answer) -> None:
            raise llm.Refusal(*(f"error {n}\n {'x' * 900}" for n in range(40)))

        host = host_of()
        with host, self.assertRaises(Failure) as raised:
            TASK.document("", "", Answer, check)
        text = host.llm_requests[1].text()
        self.assertIn("- error 11 x", text)
        self.assertNotIn("- error 12 ", text)
        self.assertLess(len(text), 12 * 400)
        self.assertLess(len(raised.exception.message), 2 * 12 * 400)


class Attempts(unittest.TestCase):
    def test_attempts_are_counted_for_each_candidate(self) -> None:
        good = number(2)
        good.extra["attempts"] = tried("pro", 2)
        status = Failure.invalid("no such model", details={"status": 404})
        busy = Failure.unavailable("busy", details={"retry_after_ms": 90_000})
        other = "fallback 1 (attempts=1)"
        for case, results, origin, candidates in (
            ("the first", [number(2)], "google:large (attempts=1)", [0]),
            ("a refusal", [number(1), good], "google:pro (attempts=3)", [0, 0]),
            (
                "all causes",
                [away(), wrong_shape(), number(1), away()],
                "fallback 1 (attempts=2)",
                [0, 0, 0, 1, 1],
            ),
            ("retries of the host", [away(3)], other, [0, 1]),
            ("a permanent failure", [status], other, [0, 1]),
            ("a long delay", [busy], other, [0, 1]),
        ):
            with self.subTest(case):
                host = host_of(results)
                self.assertEqual(run(host).origin(), origin)
                self.assertEqual(asked(host), candidates)
        host = host_of([number(1), away(1)])
        run(host)
        self.assertEqual([request.retries for request in host.llm_requests], [2, 1, 0])

    def test_the_failure_names_the_task_the_models_and_their_reasons(self) -> None:
        host = host_of([number(7)] * 6)
        with self.assertRaises(Failure) as raised:
            run(host)
        self.assertEqual(asked(host), [0, 0, 0, 1, 1, 1])
        failure = raised.exception
        self.assertEqual((failure.code, failure.retryable), (llm.TASK_FAILED, False))
        self.assertEqual(
            failure.message,
            "no model could do task `plan`: `google:large` (attempts=3): 7 is odd | "
            "`fallback 1` (attempts=3): 7 is odd",
        )
        models = [
            {"model": model, "attempts": 3, "errors": ["7 is odd"]}
            for model in ("google:large", "fallback 1")
        ]
        self.assertEqual(failure.details, {"task": "plan", "models": models})
        self.assertEqual([it.level for it in host.logged], ["warn", "warn"])

    def test_a_document_of_another_type_is_refused(self) -> None:
        host = host_of([llm.Completion.of_json({"number": "x"})])
        self.assertEqual(run(host).attempts, 2)
        self.assertIn("is invalid at `number`", host.llm_requests[1].text())

    def test_a_text_is_complete_before_it_is_checked(self) -> None:
        def check(text: str) -> int:
            if "<html>" not in text:
                raise llm.Refusal("`<html>` is missing")
            return len(text)

        host = host_of(
            [
                llm.Completion(["<html>"], finish_reason=llm.FinishReason.LENGTH),
                llm.Completion(["<html>"], finish_reason=llm.FinishReason.CONTENT_FILTER),
                *(llm.Completion.of_text(text) for text in (" ", "no", "<html>")),
            ]
        )
        with host:
            self.assertEqual(TASK.text("", "", check).value, 6)
        self.assertEqual(asked(host), [0, 0, 0, 1, 1])
        self.assertIsNone(host.llm_requests[0].response_schema)
        reasons = ("cut off", "withheld", "is empty", "`<html>` is missing")
        for request, reason in zip(host.llm_requests[1:], reasons, strict=True):
            self.assertIn(reason, request.text())

    def test_a_cancelled_run_sends_no_further_request(self) -> None:
        host = host_of([Failure(code.CANCELLED, "stopped")])
        with self.assertRaises(Failure) as raised:
            run(host)
        self.assertEqual((raised.exception.code, len(host.llm_requests)), (code.CANCELLED, 1))

    def test_another_exception_of_the_check_ends_the_task(self) -> None:
        def check(_: str) -> None:
            raise Failure.conflict("not now")

        host = host_of()
        with host, self.assertRaisesRegex(Failure, "^not now$"):
            TASK.text("", "", check)
        self.assertEqual(len(host.llm_requests), 1)

    def test_a_missing_route_is_reported_with_the_task(self) -> None:
        with FakeHost(), self.assertRaisesRegex(Failure, "^plan: "):
            TASK.text("", "", str)


if __name__ == "__main__":
    unittest.main()
