//! `wattle thread calls|settle`: lists pending calls, and settles calls in doubt.

use serde_json::json;
use wattle_graph::event::Decision;
use wattle_graph::id::call_path;
use wattle_run::engine::settle::PendingCall;

use crate::args::{DecisionArg, ThreadSettleArgs};
use crate::client::Client;
use crate::command::thread::thread_path;
use crate::command::{format, json_arg};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table};

pub(super) async fn list(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let calls: Vec<PendingCall> = client.get(&thread_path(thread, "open-calls")).await?;
    output.data(&calls, |calls| {
        let mut table =
            Table::new(&["call", "seq", "node", "function", "summary", "started", "decision"]);
        for call in calls {
            table.row([
                call_id(call),
                call.seq.to_string(),
                call.node.to_string(),
                call.function.clone(),
                call.summary.clone(),
                format::local_time(call.at_ms),
                call.decision.as_ref().map(one_line_json).unwrap_or_default(),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

fn one_line_json(decision: &Decision) -> String {
    serde_json::to_string(decision).unwrap_or_default()
}

/// Returns the id of a call as `wattle thread settle` expects it: task and number.
fn call_id(call: &PendingCall) -> String {
    format!("{}/{}", call.task, call_path(&call.scope, call.call))
}

pub(super) async fn settle(
    client: &Client,
    args: &ThreadSettleArgs,
    output: Output,
) -> Result<Exit, Error> {
    let (task, scope, call) = parse_call_id(&args.call)?;
    let decision = match (&args.answer, args.decision) {
        (Some(answer), None) => Decision::Answer { answer: json_arg::parse(answer)? },
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
        "task": task, "scope": scope, "call": call, "seq": args.seq, "decision": decision,
        "by": "command line",
    });
    client.post_empty(&thread_path(&args.thread, "settle"), &body).await?;
    output.data(&json!({ "settled": args.call }), |_| {
        format!(
            "settled; continue with `wattle thread resume {}`",
            format::shell_quote(&args.thread)
        )
    });
    Ok(Exit::Ok)
}

/// Parses the id of a call into task, scope and number.
pub(super) fn parse_call_id(text: &str) -> Result<(&str, Vec<u32>, u32), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_id_has_a_task_and_a_path() {
        assert_eq!(parse_call_id("abc/2").unwrap(), ("abc", vec![], 2));
        assert_eq!(parse_call_id("abc/0.3.2").unwrap(), ("abc", vec![0, 3], 2));
        assert!(parse_call_id("abc").is_err() && parse_call_id("abc/x").is_err());
    }
}
