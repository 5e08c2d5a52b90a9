//! `wattle trace`: prints the trace of a thread as a tree, or verifies the seals of the thread.

use serde_json::Value;
use wattle_project::trace::{
    AttemptTrace, CallTrace, ChangeTrace, PrincipalTrace, RunTrace, StepTrace, TaskTrace, Trace,
};
use wattle_run::hostcall::clock;
use wattle_run::ports::store::SealReport;
use wattle_run::text::Escaped;

use crate::client::{Client, encode_segment};
use crate::command::format;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Prints the trace of a thread. `is_verbose` adds the details of failures to the tree; JSON always
/// has them.
pub(super) async fn trace(
    client: &Client,
    thread: &str,
    is_verbose: bool,
    output: Output,
) -> Result<Exit, Error> {
    let path = format!("/api/v1/threads/{}/trace", encode_segment(thread));
    let mut trace: Trace = client.get(&path).await?;
    if !output.json && !is_verbose {
        remove_details(&mut trace);
    }
    output.data(&trace, render);
    Ok(Exit::Ok)
}

fn remove_details(trace: &mut Trace) {
    for run in &mut trace.runs {
        run.failure_details = None;
        remove_details_of_steps(&mut run.steps);
    }
}

fn remove_details_of_steps(steps: &mut [StepTrace]) {
    let tasks = steps.iter_mut().flat_map(|step| &mut step.tasks);
    for attempt in tasks.flat_map(|task| &mut task.attempts) {
        attempt.failure_details = None;
        remove_details_of_calls(&mut attempt.calls);
        for graph in &mut attempt.graphs {
            remove_details_of_steps(&mut graph.steps);
        }
    }
}

fn remove_details_of_calls(calls: &mut [CallTrace]) {
    for call in calls {
        call.failure_details = None;
        remove_details_of_calls(&mut call.calls);
    }
}

/// Verifies the seals of a thread.
pub(super) async fn verify(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let verified: SealReport =
        client.get(&format!("/api/v1/threads/{}/verify", encode_segment(thread))).await?;
    output.data(&verified, |verified| {
        let mut lines = vec![format!("all seals are valid, up to event {}", verified.last_seq)];
        if verified.sealed_after > 0 {
            lines.push(format!("not sealed: events up to {}", verified.sealed_after));
        }
        if let Some(seal) = &verified.seal {
            lines.push(format!("seal  {seal}"));
        }
        lines.join("\n")
    });
    Ok(Exit::Ok)
}

/// A line of the tree, with the lines that are nested below it. Its line breaks are escaped,
/// because the text after one would look like another line of the tree.
struct TreeNode {
    line: String,
    children: Vec<TreeNode>,
}

impl TreeNode {
    fn leaf(line: impl Into<String>) -> Self {
        Self { line: line.into(), children: Vec::new() }
    }
}

fn render(trace: &Trace) -> String {
    let mut text = format!("thread {}\n", Escaped(&trace.thread));
    let runs = trace.runs.iter().map(|it| (it.started_ms, run(it)));
    let changes = trace.changes.iter().map(|it| (it.at_ms, change(it)));
    let mut nodes: Vec<(i64, TreeNode)> = runs.chain(changes).collect();
    nodes.sort_by_key(|(at_ms, _)| *at_ms);
    let nodes: Vec<TreeNode> = nodes.into_iter().map(|(_, node)| node).collect();
    write_tree(&nodes, "", &mut text);
    if trace.truncated {
        text.push_str("the thread has more events, for which the trace is too large\n");
    }
    let totals = trace.totals;
    text.push_str(&format!(
        "{} host calls, {} of them to models, {} tokens in, {} out",
        totals.calls, totals.model_calls, totals.input_tokens, totals.output_tokens
    ));
    text
}

fn write_tree(nodes: &[TreeNode], margin: &str, text: &mut String) {
    for (index, node) in nodes.iter().enumerate() {
        let last = index + 1 == nodes.len();
        let (knot, below) = if last { ("`-- ", "    ") } else { ("|-- ", "|   ") };
        text.push_str(&format!("{margin}{knot}{}\n", Escaped(&node.line)));
        write_tree(&node.children, &format!("{margin}{below}"), text);
    }
}

fn run(run: &RunTrace) -> TreeNode {
    let took = run.ended_ms.and_then(|ended| u64::try_from(ended - run.started_ms).ok());
    let took = took.map(|ms| format!(" {}", format::duration(ms * 1_000))).unwrap_or_default();
    let mut line = format!("run {} {} ({}) {}{took}", run.run, run.graph, run.reason, run.status);
    if run.recoveries > 0 {
        line.push_str(&format!(", recovered {} times", run.recoveries));
    }
    if let Some(failure) = &run.failure {
        line.push_str(&format!(": {failure}"));
    }
    line.push_str(&format_principal("requested by", run.principal.as_ref()));
    line.push_str(&format_principal("cancelled by", run.cancelled_by.as_ref()));
    let answers = run.answers.iter().map(|answer| {
        let by = format_principal("by", answer.principal.as_ref());
        let value = shortened(&answer.answer);
        TreeNode::leaf(format!("answer to {}: {value}{by}", answer.question))
    });
    let details = details(run.failure_details.as_ref()).into_iter();
    TreeNode { line, children: details.chain(answers).chain(run.steps.iter().map(step)).collect() }
}

fn change(change: &ChangeTrace) -> TreeNode {
    let by = format_principal("by", change.principal.as_ref());
    TreeNode::leaf(format!("{} {}{by}", change.change, change.summary))
}

/// Formats the principal of an action as the end of a line.
fn format_principal(word: &str, principal: Option<&PrincipalTrace>) -> String {
    principal.map(|principal| format!(" [{word} {principal}]")).unwrap_or_default()
}

fn step(step: &StepTrace) -> TreeNode {
    let mut line = format!("step {}", step.step);
    if !step.changed.is_empty() {
        line.push_str(&format!(" -> {}", step.changed.join(", ")));
    }
    TreeNode { line, children: step.tasks.iter().map(task).collect() }
}

/// Formats a task. A task with one attempt is one line. If a task has several attempts, each
/// attempt has a separate line.
fn task(task: &TaskTrace) -> TreeNode {
    match task.attempts.as_slice() {
        [only] => TreeNode {
            line: format!("{} {}", task.node, attempt_line(only)),
            children: children(only),
        },
        many => TreeNode {
            line: task.node.clone(),
            children: many
                .iter()
                .map(|attempt| TreeNode {
                    line: attempt_line(attempt),
                    children: children(attempt),
                })
                .collect(),
        },
    }
}

fn attempt_line(attempt: &AttemptTrace) -> String {
    let mut line = match attempt.outcome.as_str() {
        AttemptTrace::CUT => "cut by a stop of the host".to_owned(),
        outcome => outcome.to_owned(),
    };
    if attempt.attempt > 1 {
        line.push_str(&format!(" at attempt {}", attempt.attempt));
    }
    if let Some(us) = attempt.duration_us {
        line.push_str(&format!(" {}", format::duration(us)));
    }
    if let Some(bytes) = attempt.written_bytes {
        line.push_str(&format!(", wrote {}", format::byte_size(bytes)));
    }
    if attempt.replayed > 0 {
        line.push_str(&format!(", {} calls replayed", attempt.replayed));
    }
    if let Some(failure) = &attempt.failure {
        line.push_str(&format!(": {failure}"));
    }
    line
}

fn children(attempt: &AttemptTrace) -> Vec<TreeNode> {
    let calls = call_nodes(&attempt.calls).into_iter();
    let messages = attempt.messages.iter().map(TreeNode::leaf);
    let questions =
        attempt.questions.iter().map(|question| TreeNode::leaf(format!("interrupt {question}")));
    let graphs = attempt.graphs.iter().map(|graph| TreeNode {
        line: format!("graph {}", graph.namespace),
        children: graph.steps.iter().map(step).collect(),
    });
    let details = details(attempt.failure_details.as_ref()).into_iter();
    details.chain(calls).chain(messages).chain(questions).chain(graphs).collect()
}

/// Formats the details of a failure. Lists, such as the frames of a stack, have a line for each
/// item. A long list ends with `...`.
fn details(details: Option<&Value>) -> Option<TreeNode> {
    let children = match details? {
        Value::Object(fields) => fields.iter().map(|(name, value)| detail(name, value)).collect(),
        other => vec![TreeNode::leaf(shortened(other))],
    };
    Some(TreeNode { line: "details".into(), children })
}

fn detail(name: &str, value: &Value) -> TreeNode {
    // The SDKs write the first 30 frames of a stack.
    const MAX_SHOWN_ITEMS: usize = 50;
    let Some(items) = value.as_array() else {
        return TreeNode::leaf(format!("{name}: {}", shortened(value)));
    };
    let item =
        |item: &Value| TreeNode::leaf(item.as_str().map_or_else(|| shortened(item), str::to_owned));
    let rest = (items.len() > MAX_SHOWN_ITEMS).then(|| TreeNode::leaf("..."));
    let children = items.iter().take(MAX_SHOWN_ITEMS).map(item).chain(rest).collect();
    TreeNode { line: name.to_owned(), children }
}

/// Formats calls. Consecutive calls of a function of clock or random numbers are one line, because
/// the runtime of a language may make many of them.
fn call_nodes(calls: &[CallTrace]) -> Vec<TreeNode> {
    let is_joined = |call: &CallTrace| {
        let is_done = call.duration_us.is_some() && call.failure.is_none();
        is_done && clock::FUNCTIONS.contains(&call.function.as_str())
    };
    let groups = calls.chunk_by(|call, next| {
        call.function == next.function && is_joined(call) && is_joined(next)
    });
    let node = |group: &[CallTrace]| match group {
        [call] => TreeNode {
            line: call_line(call),
            children: details(call.failure_details.as_ref())
                .into_iter()
                .chain(call_nodes(&call.calls))
                .collect(),
        },
        calls => TreeNode::leaf(call_line(&sum(calls))),
    };
    groups.map(node).collect()
}

/// Returns calls of one function as one call with their number, and the sums of their durations and
/// sizes.
fn sum(calls: &[CallTrace]) -> CallTrace {
    let durations = calls.iter().filter_map(|call| call.duration_us);
    CallTrace {
        function: calls.first().map(|call| call.function.clone()).unwrap_or_default(),
        summary: format!("({} calls)", calls.len()),
        duration_us: Some(durations.fold(0, u64::saturating_add)),
        request_bytes: calls.iter().map(|call| call.request_bytes).sum(),
        answer_bytes: calls.iter().map(|call| call.answer_bytes).sum(),
        ..CallTrace::default()
    }
}

fn call_line(call: &CallTrace) -> String {
    let mut line = call.function.clone();
    if !call.summary.is_empty() {
        line.push_str(&format!(" {}", call.summary));
    }
    match call.duration_us {
        Some(us) => line.push_str(&format!(
            " {} {} -> {}",
            format::duration(us),
            format::byte_size(call.request_bytes),
            format::byte_size(call.answer_bytes)
        )),
        None => line.push_str(" without a result"),
    }
    if let (Some(input), Some(output)) = (call.input_tokens, call.output_tokens) {
        line.push_str(&format!(", {input} + {output} tokens"));
    }
    if let Some(seq) = call.reused {
        line.push_str(&format!(", reused from event {seq}"));
    }
    if let Some(failure) = &call.failure {
        line.push_str(&format!(": {failure}"));
    }
    line
}

fn shortened(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((index, _)) => format!("{}...", &text[..index]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_project::trace::{GraphTrace, Totals};

    use super::*;

    #[test]
    fn consecutive_calls_of_random_numbers_are_one_line() {
        let call = |function: &str, duration_us: u64| CallTrace {
            function: function.into(),
            duration_us: Some(duration_us),
            request_bytes: 2,
            answer_bytes: 10,
            ..CallTrace::default()
        };
        let failed = CallTrace { failure: Some("invalid: x".into()), ..call("clock.to-zone", 1) };
        let calls = [
            call("random.bytes", 4),
            call("random.bytes", 6),
            call("clock.now", 1),
            call("random.bytes", 5),
            call("memory.get", 900),
            call("memory.get", 800),
            call("clock.to-zone", 3),
            failed,
        ];
        let lines: Vec<String> = call_nodes(&calls).into_iter().map(|node| node.line).collect();
        assert_eq!(
            lines,
            [
                "random.bytes (2 calls) 10us 4B -> 20B",
                "clock.now 1us 2B -> 10B",
                "random.bytes 5us 2B -> 10B",
                "memory.get 900us 2B -> 10B",
                "memory.get 800us 2B -> 10B",
                "clock.to-zone 3us 2B -> 10B",
                "clock.to-zone 1us 2B -> 10B: invalid: x",
            ]
        );
    }

    #[test]
    fn details_of_failures_are_lines_of_the_tree_until_they_are_removed() {
        let call = |details: Value, calls: Vec<CallTrace>| CallTrace {
            function: "tools.call".into(),
            failure_details: Some(details),
            calls,
            ..CallTrace::default()
        };
        let steps = |details: Value, graphs: Vec<GraphTrace>| {
            let inner = call(json!({ "traceback": ["tool.py:3"] }), Vec::new());
            let attempt = AttemptTrace {
                attempt: 1,
                outcome: "failed".into(),
                failure: Some("internal: it failed".into()),
                failure_details: Some(details),
                calls: vec![call(json!({ "exception": "ValueError" }), vec![inner])],
                graphs,
                ..AttemptTrace::default()
            };
            let task = TaskTrace { task: "t".into(), node: "n".into(), attempts: vec![attempt] };
            vec![StepTrace { step: 1, tasks: vec![task], changed: Vec::new() }]
        };
        let frames = json!({ "exception": "TypeError", "stack": ["a (src/a.ts:7)", "src/b.ts:1"] });
        let graph = GraphTrace { namespace: "n:t".into(), steps: steps(frames, Vec::new()) };
        let run = RunTrace {
            run: "r".into(),
            status: "failed".into(),
            failure_details: Some(json!([1])),
            steps: steps(json!({ "limit": "cpu" }), vec![graph]),
            ..RunTrace::default()
        };
        let mut trace = Trace { thread: "th".into(), runs: vec![run], ..Trace::default() };
        let shown = render(&trace);
        let lines: Vec<&str> = shown.lines().map(|line| line.trim_start_matches(MARGIN)).collect();
        for details in [
            &["details", "[1]"][..],
            &["details", "limit: \"cpu\""],
            &["details", "exception: \"ValueError\""],
            &["details", "traceback", "tool.py:3"],
            &["details", "exception: \"TypeError\"", "stack", "a (src/a.ts:7)", "src/b.ts:1"],
        ] {
            assert!(lines.windows(details.len()).any(|lines| lines == details), "{shown}");
        }
        remove_details(&mut trace);
        assert!(!render(&trace).contains("details"), "{}", render(&trace));
    }

    #[test]
    fn long_list_in_details_ends_with_dots() {
        let lines = |items: usize| {
            let node = detail("rows", &json!(vec![1; items]));
            node.children.into_iter().map(|child| child.line).collect::<Vec<String>>()
        };
        assert_eq!(lines(50), vec!["1"; 50]);
        let long = lines(51);
        assert_eq!((long.len(), long[50].as_str()), (51, "..."));
    }

    #[test]
    fn an_execution_that_a_stop_of_the_host_has_cut_is_not_running() {
        let attempt = |outcome: &str| AttemptTrace {
            attempt: 1,
            outcome: outcome.into(),
            ..AttemptTrace::default()
        };
        let lines = ["cut", "running"].map(|outcome| attempt_line(&attempt(outcome)));
        assert_eq!(lines, ["cut by a stop of the host", "running"]);
    }

    /// The characters before the text of a line of the tree.
    const MARGIN: [char; 4] = [' ', '|', '`', '-'];

    #[test]
    fn the_tree_shows_calls_with_times_sizes_and_tokens() {
        let call = CallTrace {
            function: "llm.complete".into(),
            summary: "chat (small)".into(),
            duration_us: Some(412_000),
            request_bytes: 2_048,
            answer_bytes: 96,
            input_tokens: Some(310),
            output_tokens: Some(42),
            ..CallTrace::default()
        };
        let attempt = AttemptTrace {
            attempt: 1,
            outcome: "finished".into(),
            duration_us: Some(415_000),
            written_bytes: Some(80),
            calls: vec![call],
            ..AttemptTrace::default()
        };
        let task = TaskTrace { task: "t".into(), node: "classify".into(), attempts: vec![attempt] };
        let step = StepTrace { step: 1, tasks: vec![task], changed: vec!["taskType".into()] };
        let run = RunTrace {
            run: "r".into(),
            graph: "AssetGraph".into(),
            reason: "input".into(),
            status: "completed".into(),
            ended_ms: Some(500),
            steps: vec![step],
            ..RunTrace::default()
        };
        let totals = Totals { calls: 1, model_calls: 1, input_tokens: 310, output_tokens: 42 };
        let trace = Trace { thread: "th".into(), runs: vec![run], totals, ..Trace::default() };
        insta::assert_snapshot!(render(&trace));
    }
}
