//! Maintenance of threads and the store: `wattle thread calls|settle|migrate|copy|prune`,
//! `wattle trace --verify`, `wattle store compact`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_api::native::maintenance::CopiedDocument;
use wattle_graph::event::Decision;
use wattle_graph::id::call_path;
use wattle_run::engine::migrate::MigrationReport;
use wattle_run::engine::settle::PendingCall;
use wattle_run::ports::store::{CompactionReport, SealReport};

use crate::args::{
    DecisionArg, StrategyArg, ThreadCopyArgs, ThreadMigrateArgs, ThreadPruneArgs, ThreadSettleArgs,
};
use crate::client::{Client, segment};
use crate::command::{input, words};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table};

fn path(thread: &str, what: &str) -> String {
    format!("/api/v1/threads/{}/{what}", segment(thread))
}

pub(super) async fn calls(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let calls: Vec<PendingCall> = client.get(&path(thread, "open-calls")).await?;
    output.data(&calls, |calls| {
        let mut table = Table::new(&["call", "node", "function", "summary", "started", "decision"]);
        for call in calls {
            table.row([
                place(call),
                call.node.to_string(),
                call.function.clone(),
                call.summary.clone(),
                words::instant(call.at_ms),
                call.decision.as_ref().map(words::pretty).unwrap_or_default(),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

/// Returns the id of a call in the format of `settle`: task and number.
fn place(call: &PendingCall) -> String {
    format!("{}/{}", call.task, call_path(&call.scope, call.call))
}

pub(super) async fn settle(
    client: &Client,
    args: &ThreadSettleArgs,
    output: Output,
) -> Result<Exit, Error> {
    let (task, scope, call) = parse_place(&args.call)?;
    let decision = match (&args.answer, args.decision) {
        (Some(answer), None) => Decision::Answer { answer: input::json(answer)? },
        (None, Some(DecisionArg::Retry)) => Decision::Retry,
        (None, Some(DecisionArg::Fail)) => Decision::Fail,
        _ => {
            return Err(Error::Usage {
                message: "the decision about the call is missing".into(),
                hint: "add `retry`, `fail`, or `--answer JSON`".into(),
            });
        }
    };
    let body = json!({
        "task": task, "scope": scope, "call": call, "decision": decision, "by": "command line",
    });
    client.post_empty(&path(&args.thread, "settle"), &body).await?;
    output.data(&json!({ "settled": args.call }), |_| {
        format!("settled; continue with `wattle thread resume {}`", words::quoted(&args.thread))
    });
    Ok(Exit::Ok)
}

/// Parses the id of a call into task, scope and number.
pub(super) fn parse_place(text: &str) -> Result<(&str, Vec<u32>, u32), Error> {
    let usage = || Error::Usage {
        message: format!("`{text}` is not the id of a call"),
        hint: "write it as `wattle thread calls` shows it: `<task>/<number>`".into(),
    };
    let (task, path) = text.rsplit_once('/').ok_or_else(usage)?;
    let numbers: Result<Vec<u32>, _> = path.split('.').map(str::parse).collect();
    let mut numbers = numbers.map_err(|_| usage())?;
    let call = numbers.pop().ok_or_else(usage)?;
    Ok((task, numbers, call))
}

pub(super) async fn migrate(
    client: &Client,
    args: &ThreadMigrateArgs,
    output: Output,
) -> Result<Exit, Error> {
    let mut set = BTreeMap::new();
    for entry in &args.set {
        let (channel, value) = entry.split_once('=').ok_or_else(|| Error::Usage {
            message: format!("`{entry}` has no `=`"),
            hint: "write `--set CHANNEL=JSON`".into(),
        })?;
        set.insert(channel, input::json(value)?);
    }
    let body = json!({ "dry_run": args.dry_run, "drop": args.drop, "set": set });
    let report: MigrationReport = client.post(&path(&args.thread, "migrate"), &body).await?;
    output.data(&report, in_words);
    Ok(if report.obstacles.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn in_words(report: &MigrationReport) -> String {
    if report.from == report.to {
        return format!("the thread already has the loaded version {}", report.to);
    }
    let mut lines = vec![format!("from  {}", report.from), format!("to    {}", report.to)];
    lines.extend(report.changes.iter().map(|change| format!("change    {}", flat(change))));
    lines.extend(report.obstacles.iter().map(|obstacle| format!("obstacle  {obstacle}")));
    lines.push(match (report.applied, report.obstacles.is_empty()) {
        (true, _) => "migrated".into(),
        (false, true) => "nothing was changed: this was a dry run".into(),
        (false, false) => "nothing was changed".into(),
    });
    lines.join("\n")
}

/// Formats a change on one line: its kind, then its subject.
fn flat(change: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(change).unwrap_or_default();
    let Value::Object(fields) = value else { return String::new() };
    let words: Vec<String> = fields
        .values()
        .map(|field| field.as_str().map_or_else(|| field.to_string(), str::to_owned))
        .collect();
    words.join(" ")
}

pub(super) async fn copy(
    client: &Client,
    args: &ThreadCopyArgs,
    output: Output,
) -> Result<Exit, Error> {
    let body = json!({ "thread_id": args.to });
    let copied: CopiedDocument = client.post(&path(&args.thread, "copy"), &body).await?;
    output.data(&copied, |copied| format!("copied to thread {}", copied.thread_id));
    Ok(Exit::Ok)
}

pub(super) async fn prune(
    client: &Client,
    args: &ThreadPruneArgs,
    output: Output,
) -> Result<Exit, Error> {
    let strategy = match args.strategy {
        StrategyArg::KeepLatest => "keep_latest",
        StrategyArg::Delete => "delete",
    };
    client.post_empty(&path(&args.thread, "prune"), &json!({ "strategy": strategy })).await?;
    output.data(&json!({ "pruned": args.thread }), |_| format!("pruned thread {}", args.thread));
    Ok(Exit::Ok)
}

pub(super) async fn verify(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let verified: SealReport = client.get(&path(thread, "verify")).await?;
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

pub(super) async fn compact(client: &Client, output: Output) -> Result<Exit, Error> {
    let compacted: CompactionReport = client.post("/api/v1/store/compact", &json!({})).await?;
    output.data(&compacted, |compacted| {
        let size = |bytes: u64| crate::config::ByteSize(bytes).to_string();
        format!("{} before, {} now", size(compacted.before_bytes), size(compacted.after_bytes))
    });
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_id_has_a_task_and_a_path() {
        assert_eq!(parse_place("abc/2").unwrap(), ("abc", vec![], 2));
        assert_eq!(parse_place("abc/0.3.2").unwrap(), ("abc", vec![0, 3], 2));
        assert!(parse_place("abc").is_err() && parse_place("abc/x").is_err());
    }
}
