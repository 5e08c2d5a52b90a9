//! Follows a run: progress on stderr, then the outcome.

mod completion_line;

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use wattle_api::document::app::GraphDocument;
use wattle_api::document::run::{InterruptDocument, RunDocument};
use wattle_api::document::thread::ThreadDocument;
use wattle_graph::event::{Called, Event, EventKind, RunStatus};
use wattle_run::hostcall::clock;
use wattle_run::text::Escaped;

use crate::client::{Client, encode_segment};
use crate::command::follow::completion_line::CompletionLine;
use crate::command::format;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, pretty_json};

/// Time between two frames of the spinner.
const SPINNER_PERIOD: Duration = Duration::from_millis(100);

/// Follows a run until it ends or is interrupted, and prints the outcome.
pub(super) async fn follow(
    client: &Client,
    run: &RunDocument,
    after: u64,
    quiet: bool,
    output: Output,
) -> Result<Exit, Error> {
    let mut progress = Progress::new(quiet);
    let mut events = client.events(&run.thread, after).await?;
    while let Some(event) = events.next().await? {
        if event.run.as_str() == run.run {
            progress.show(&event);
        }
    }
    progress.finish();
    let path = format!("/api/v1/runs/{}/wait", encode_segment(&run.run));
    let ended: RunDocument = client.get(&path).await?;
    if output.json {
        output.json(&ended);
    } else {
        if let Some(text) = outcome(&ended) {
            Output::line(&text);
        }
        let is_failed = ended.status == RunStatus::Failed;
        let is_outdated =
            is_failed && has_loaded_version(client, &ended.thread).await == Some(false);
        print_next_step(&ended, progress.failure.as_deref(), is_outdated);
    }
    Ok(match ended.status {
        RunStatus::Interrupted => Exit::Interrupted,
        RunStatus::Failed => Exit::RunFailed,
        RunStatus::Cancelled => Exit::Cancelled,
        RunStatus::Completed | RunStatus::Pending | RunStatus::Running => Exit::Ok,
    })
}

/// Returns the sequence number of the last event of a thread, so that only later events are shown.
pub(super) async fn last_event_seq(client: &Client, thread: &str) -> Result<u64, Error> {
    let mut events = client.events(thread, 0).await?;
    let mut newest = 0;
    while let Some(event) = events.next().await? {
        newest = event.seq;
    }
    Ok(newest)
}

struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    completion: CompletionLine,
    /// Message of the newest failure of a task that the user has seen.
    failure: Option<String>,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        let bar = (!quiet && Output::is_interactive()).then(|| {
            let bar = ProgressBar::new_spinner();
            // The template is a valid constant, so this does not fail.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(SPINNER_PERIOD);
            bar
        });
        Self { bar, quiet, completion: CompletionLine::default(), failure: None }
    }

    /// Shows an event. Finished work remains on the screen, and work in progress is shown next to
    /// the spinner.
    fn show(&mut self, event: &Event) {
        let (line, stays) = match &event.kind {
            EventKind::TaskStarted(started) => (started.node.to_string(), false),
            EventKind::TaskFinished(finished) => {
                let took = format::duration(finished.duration_us);
                (format!("{} done in {took}", finished.node), true)
            }
            EventKind::TaskFailed(failed) => {
                self.failure = (!self.quiet).then(|| failed.failure.message.clone());
                let again = if failed.retry_in_ms.is_some() { ", retrying" } else { "" };
                (format!("{} failed{again}: {}", failed.node, failed.failure), true)
            }
            EventKind::CallStarted(call) => {
                self.completion.start_call(call);
                (format!("{} {}", call.function, call.summary), false)
            }
            EventKind::Streamed(streamed) => match self.completion.push(streamed) {
                Some(words) => (format!("{}: {words}", streamed.node), false),
                None => return,
            },
            EventKind::Called(call) => match call_line(call) {
                Some(line) => (line, true),
                None => return,
            },
            EventKind::Progress(progress) => {
                (format!("{}: {}", progress.node, progress.message), false)
            }
            EventKind::Log(log) => (format!("{}: {}: {}", log.node, log.level, log.message), true),
            _ => return,
        };
        self.print(line, stays);
    }

    /// Shows a line. A line that does not stay is shown next to the spinner.
    fn print(&self, line: String, stays: bool) {
        // A line break in a text of a guest or a service would begin another line.
        let line = Escaped(line).to_string();
        match (&self.bar, stays) {
            _ if self.quiet => {}
            (Some(bar), true) => bar.println(format!("  {line}")),
            (Some(bar), false) => bar.set_message(line),
            (None, true) => Output::note(&format!("  {line}")),
            (None, false) => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Describes a call that has ended. A message of a failure can have hints on further lines, which
/// the trace shows.
///
/// Returns `None` for a successful call of clock or random numbers. The runtime of a language may
/// make many of them at the start of each node and each tool call, and their lines would hide the
/// calls of the author.
fn call_line(call: &Called) -> Option<String> {
    if call.result.is_ok() && clock::FUNCTIONS.contains(&call.function.as_str()) {
        return None;
    }
    let took = format::duration(call.duration_us);
    let what = format!("{} {}", call.function, call.summary);
    let mut line = format!("{}: {} {took}", call.node, what.trim_end());
    if let Err(failure) = &call.result {
        let message = failure.message.lines().next().unwrap_or_default();
        line.push_str(&format!(" failed: {}: {message}", failure.code));
    }
    Some(line)
}

/// Returns the outcome as text: the state, or the interrupts.
fn outcome(run: &RunDocument) -> Option<String> {
    match run.status {
        RunStatus::Interrupted => Some(render_interrupts(&run.interrupts, &run.next)),
        RunStatus::Completed => run.state.as_ref().map(pretty_json),
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::Pending | RunStatus::Running => None,
    }
}

/// Describes pending interrupts, or the nodes before which a run has stopped without an interrupt.
pub(super) fn render_interrupts(open: &[InterruptDocument], next: &[String]) -> String {
    if open.is_empty() {
        return format!("stopped before {}", next.join(", "));
    }
    let question = |question: &InterruptDocument| {
        let mut text = format!("interrupt {} from {}\n", question.id, question.node);
        text.push_str(&format::indent(&pretty_json(&question.payload), 2));
        if let Some(schema) = &question.response_schema {
            text.push_str("\n  the answer must match this schema:\n");
            text.push_str(&format::indent(&pretty_json(schema), 2));
        }
        if let Some(expires_ms) = question.expires_ms {
            text.push_str(&format!("\n  expires {}", format::local_time(expires_ms)));
        }
        text
    };
    open.iter().map(question).collect::<Vec<_>>().join("\n\n")
}

/// Returns true if a thread is pinned to the loaded version of its graph, and false if it is pinned
/// to another one. Returns `None` if one of the versions is unknown.
pub(super) async fn has_loaded_version(client: &Client, thread: &str) -> Option<bool> {
    let path = format!("/api/v1/threads/{}", encode_segment(thread));
    let thread: ThreadDocument = client.get(&path).await.ok()?;
    let (app, graph) = (&thread.summary.app, &thread.summary.graph);
    let path = format!("/api/v1/apps/{}/graphs/{}", encode_segment(app), encode_segment(graph));
    let loaded: GraphDocument = client.get(&path).await.ok()?;
    Some(loaded.version == thread.version)
}

/// Prints the next step for the user. `shown` is the message of a failure that the user has seen.
/// `is_outdated` is true if the thread of a failed run is pinned to another version than the loaded
/// one.
fn print_next_step(run: &RunDocument, shown: Option<&str>, is_outdated: bool) {
    let thread = format::shell_quote(&run.thread);
    match run.status {
        RunStatus::Interrupted => {
            let answers = match run.interrupts.as_slice() {
                [] => String::new(),
                [_] => " --answer '<json>'".to_owned(),
                many => many
                    .iter()
                    .map(|question| format!(" --answer '{}=<json>'", question.id))
                    .collect::<Vec<_>>()
                    .concat(),
            };
            Output::note(&format!(
                "thread {} is interrupted\n  hint: resume it with `wattle thread resume \
                 {thread}{answers}`",
                Escaped(&run.thread)
            ));
        }
        RunStatus::Failed => {
            let unseen = run.failure.as_ref().filter(|it| shown != Some(it.message.as_str()));
            let why = unseen.map_or_else(String::new, |it| format!(": {}", format::failure(it)));
            // Otherwise, the nodes run again with the code to which the thread is pinned.
            let migration = if is_outdated {
                format!(
                    "the app has changed, so move the thread to its loaded code with `wattle \
                     thread migrate {thread}`, and then "
                )
            } else {
                String::new()
            };
            Output::error(&format!(
                "the run failed{why}\n  hint: see `wattle trace {thread}`; {migration}run the \
                 failed nodes again with `wattle thread resume {thread}`"
            ));
        }
        RunStatus::Cancelled => {
            Output::note(&format!("thread {}: the run was cancelled", Escaped(&run.thread)));
        }
        RunStatus::Completed | RunStatus::Pending | RunStatus::Running => {
            Output::note(&format!(
                "thread {} completed\n  hint: see what happened with `wattle trace {thread}`",
                Escaped(&run.thread)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wattle_graph::failure::{Failure, code};
    use wattle_graph::id::Digest;

    use super::*;

    fn called(function: &str, result: &Value) -> Called {
        let document = json!({
            "task": "t", "node": "tools", "call": 0, "function": function,
            "summary": "lookup_order", "digest": Digest::of(b""), "request": {}, "result": result,
            "started_ms": 0, "duration_us": 10_700, "batch": 0,
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn a_failed_call_has_its_code_and_the_first_line_of_its_message() {
        let ended = |result: &Value| call_line(&called("tools.call", result)).unwrap();
        assert_eq!(ended(&json!({ "Ok": {} })), "tools: tools.call lookup_order 10.7ms");
        let failure = Failure::new(code::DENIED, "no grant for `orders`\n  hint: add one");
        assert_eq!(
            ended(&json!({ "Err": failure })),
            "tools: tools.call lookup_order 10.7ms failed: denied: no grant for `orders`"
        );
    }

    #[test]
    fn calls_of_clock_and_random_numbers_are_shown_only_if_they_fail() {
        let failure = json!({ "Err": Failure::new(code::INVALID, "no such zone") });
        for function in clock::FUNCTIONS {
            assert_eq!(call_line(&called(function, &json!({ "Ok": [] }))), None);
            assert!(call_line(&called(function, &failure)).is_some(), "{function}");
        }
    }

    #[test]
    fn interrupts_have_their_schema_and_expiry() {
        let question = InterruptDocument {
            id: "ab12".into(),
            namespace: String::new(),
            node: "review".into(),
            payload: json!({ "rows": [] }),
            response_schema: Some(json!({ "type": "boolean" })),
            asked_ms: 0,
            expires_ms: None,
        };
        insta::assert_snapshot!(render_interrupts(&[question], &[]));
        assert_eq!(render_interrupts(&[], &["a".into(), "b".into()]), "stopped before a, b");
    }
}
