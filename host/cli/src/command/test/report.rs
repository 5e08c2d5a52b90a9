//! The report of tests.

use std::time::Duration;

use serde::Serialize;
use wattle_api::document::run::FailureDocument;
use wattle_run::replay::Replay;

use crate::cases::verdict::{Check, describe_failure};
use crate::command::{format, replay};

/// The results of the tests of an app.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) app: String,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) tests: Vec<TestResult>,
}

/// The kind of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Case,
    Thread,
}

/// The result of a test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestResult {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) passed: bool,
    pub(super) time_ms: u64,
    /// Status of the run of a case; `refused` if the graph rejects the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<String>,
    /// Failure of the run of a case, or the reason why a thread cannot be replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<FailureDocument>,
    /// Result of each expectation of a case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) checks: Vec<Check>,
    /// Comparison of a thread with its replay by the current code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) replay: Option<Replay>,
}

impl Report {
    pub(super) fn new(app: &str, tests: Vec<TestResult>) -> Self {
        let passed = tests.iter().filter(|test| test.passed).count();
        Self { app: app.to_owned(), passed, failed: tests.len() - passed, tests }
    }

    /// Returns the report as text.
    pub(super) fn render(&self) -> String {
        let mut lines: Vec<String> = self.tests.iter().flat_map(TestResult::lines).collect();
        lines.push(format!("{} passed, {} failed", self.passed, self.failed));
        lines.join("\n")
    }
}

impl TestResult {
    /// Creates the result of a thread. The test passes if the replay compares at least one part of
    /// the thread and finds no difference.
    pub(super) fn from_replay(
        name: String,
        outcome: Result<Replay, String>,
        elapsed: Duration,
    ) -> Self {
        let outcome = outcome.and_then(|replay| {
            if replay.is_empty() { Err(nothing_compared(&replay)) } else { Ok(replay) }
        });
        let failure = outcome.as_ref().err().map(|message| FailureDocument {
            code: "unusable".to_owned(),
            message: message.clone(),
            retryable: false,
            details: None,
        });
        let replay = outcome.ok();
        Self {
            name,
            kind: Kind::Thread,
            passed: replay.as_ref().is_some_and(|replay| replay.divergences.is_empty()),
            time_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            status: None,
            failure,
            checks: Vec::new(),
            replay,
        }
    }

    fn lines(&self) -> Vec<String> {
        let mark = if self.passed { "ok    " } else { "failed" };
        let status = self.status.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
        let elapsed = format::duration(self.time_ms * 1_000);
        let mut lines = vec![format!("{mark}  {} ({elapsed}{status})", self.name)];
        if !self.passed {
            lines.extend(describe_failure(self.failure.as_ref(), &self.checks));
            let replay = self.replay.iter().flat_map(replay::differences);
            lines.extend(replay.map(|line| format!("  {line}")));
        }
        // A test that passes also lists the parts that were not compared.
        let skipped = self.replay.iter().flat_map(replay::skipped_parts);
        lines.extend(skipped.map(|part| format!("  not compared: {part}")));
        lines
    }
}

/// Returns the message for a thread of which the replay could not compare any part.
fn nothing_compared(replay: &Replay) -> String {
    let reasons: Vec<String> = replay::skipped_parts(replay).collect();
    let reasons =
        if reasons.is_empty() { "no task of the thread ran".into() } else { reasons.join("; ") };
    format!("nothing of the thread can be compared: {reasons}; export a thread whose run has ended")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cases::verdict::Mismatch;

    fn tested(name: &str, passed: bool) -> TestResult {
        let mismatch = (!passed).then(|| Mismatch { expected: json!(2), got: json!(1) });
        let pointer = "/state/words".to_owned();
        TestResult {
            name: name.to_owned(),
            kind: Kind::Case,
            passed,
            time_ms: 12,
            status: Some("completed".to_owned()),
            failure: None,
            checks: vec![Check { field: pointer.clone(), pointer, passed, mismatch }],
            replay: None,
        }
    }

    #[test]
    fn a_report_lists_all_tests_and_the_reasons_of_failed_tests() {
        let unusable = Err("line 1 is not a valid export record".to_owned());
        let thread = TestResult::from_replay("old".to_owned(), unusable, Duration::from_millis(3));
        let report = Report::new("notes", vec![tested("a", true), tested("b", false), thread]);
        assert_eq!((report.passed, report.failed), (1, 2));
        insta::assert_snapshot!(report.render(), @"
        ok      a (12.0ms, completed)
        failed  b (12.0ms, completed)
          /state/words
            expected  2
            got       1
        failed  old (3.0ms)
          unusable: line 1 is not a valid export record
        1 passed, 2 failed
        ");
    }

    /// Returns the result of a thread with `tasks` tasks that are the same, and with one task and
    /// two calls that were not compared.
    fn replayed(name: &str, tasks: usize, divergences: &Value) -> TestResult {
        let left_out = json!({ "checkpoints": 0, "tasks": 1, "calls": 2 });
        let skipped = json!({ "namespace": "", "checkpoint": 1, "node": "n",
            "reason": "the task has not ended", "left_out": left_out });
        let replay = json!({ "checkpoints": 0, "tasks": tasks, "calls": 0, "left_out": left_out,
            "skipped": [skipped], "divergences": divergences });
        let replay = serde_json::from_value(replay).unwrap();
        TestResult::from_replay(name.to_owned(), Ok(replay), Duration::from_millis(3))
    }

    #[test]
    fn requests_that_differ_in_the_same_place_are_shown_once() {
        let request = |prompt: &str, said: &str, function: &str| {
            let messages = json!([{ "parts": [{ "text": prompt }] }, { "text": said }]);
            json!({ "function": function, "request": { "route": "chat", "messages": messages } })
        };
        let (then, now) = ("Answer in English.", "Answer in French.");
        let divergence = |call: u32, recorded: Value, now: Value| {
            json!({ "namespace": "", "checkpoint": call, "node": "agent", "task": "t",
                "call": call, "message": "it differs", "recorded": recorded, "now": now })
        };
        let turn = |call, said| {
            let function = "llm.complete";
            divergence(call, request(then, said, function), request(now, said, function))
        };
        let cut = json!({ "function": "llm.complete", "request": { "bytes": 20_000 } });
        let divergences = json!([
            turn(1, "a"),
            turn(2, "b"),
            divergence(3, request(then, "a", "x.y"), request(now, "b", "x.y")),
            divergence(4, cut.clone(), cut),
            divergence(5, Value::Null, json!({ "function": "http.send" })),
            turn(6, "c"),
        ]);
        let tests = vec![replayed("talk", 1, &divergences)];
        let report = Report::new("notes", tests).render();
        let lines: Vec<&str> = report.lines().filter(|line| !line.contains("compared")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        failed  talk (3.0ms)
          node `agent`, call 1, checkpoint 1: it differs
            /messages/0/parts/0/text
              then  "Answer in English."
              now   "Answer in French."
            later calls that differ only there: 2
          node `agent`, call 3, checkpoint 3: it differs
            /messages/0/parts/0/text
              then  "Answer in English."
              now   "Answer in French."
            further differences: 1
          node `agent`, call 4, checkpoint 4: it differs
            the journal does not have the part of the request that differs
          node `agent`, call 5, checkpoint 5: it differs
            then  null
            now   {"function":"http.send"}
        0 passed, 1 failed
        "#);
    }

    #[test]
    fn the_test_of_a_thread_fails_if_nothing_is_compared() {
        let other = json!([{ "namespace": "", "checkpoint": 1, "node": "n", "task": "t",
            "message": "it differs", "recorded": 1, "now": 2 }]);
        let tests = vec![
            replayed("part", 1, &json!([])),
            replayed("other", 0, &other),
            replayed("cut", 0, &json!([])),
        ];
        insta::assert_snapshot!(Report::new("notes", tests).render(), @"
        ok      part (3.0ms)
          not compared: 1 task and 2 host calls, because the task has not ended
        failed  other (3.0ms)
          node `n`, checkpoint 1: it differs
            then  1
            now   2
          not compared: 1 task and 2 host calls, because the task has not ended
        failed  cut (3.0ms)
          unusable: nothing of the thread can be compared: 1 task and 2 host calls, because the task has not ended; export a thread whose run has ended
        1 passed, 2 failed
        ");
    }
}
