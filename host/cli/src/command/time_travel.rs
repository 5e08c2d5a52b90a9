//! `wattle thread state|history|edit|fork`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use wattle_api::document::run::RunDocument;
use wattle_api::document::thread::CheckpointDocument;
use wattle_api::document::time_travel::{
    EditDocument, EditsDocument, ForkCallDocument, ForkDocument,
};
use wattle_graph::failure::{Failure, code};

use crate::args::{ThreadEditArgs, ThreadForkArgs, ThreadHistoryArgs, ThreadStateArgs};
use crate::client::{Client, encode_segment};
use crate::command::calls::parse_call_id;
use crate::command::{follow, format, json_arg};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table, pretty_json};

pub(super) async fn state(
    client: &Client,
    args: &ThreadStateArgs,
    output: Output,
) -> Result<Exit, Error> {
    let checkpoint = args.checkpoint.map_or_else(|| "latest".to_owned(), |id| id.to_string());
    let mut path =
        format!("/api/v1/threads/{}/checkpoints/{checkpoint}", encode_segment(&args.thread));
    if let Some(namespace) = &args.namespace {
        path.push_str(&format!("?namespace={}", encode_segment(namespace)));
    }
    let document: CheckpointDocument = client.get(&path).await?;
    output.data(&document, render);
    Ok(Exit::Ok)
}

fn render(document: &CheckpointDocument) -> String {
    let mut lines = vec![
        format!("checkpoint  {}", document.id),
        format!(
            "created     {}, {}",
            format::serde_name(&document.source),
            format::local_time(document.at_ms)
        ),
        format!("step        {}", document.step),
    ];
    if !document.writers.is_empty() {
        lines.push(format!("by          {}", document.writers.join(" ")));
    }
    if let Some(state) = &document.state {
        lines.push(format!("state\n{}", format::indent(&pretty_json(state), 2)));
    }
    for task in &document.tasks {
        let status = match (&task.writes, &task.failure) {
            (Some(_), _) => "has finished".to_owned(),
            (None, Some(failure)) => format!("failed: {}", format::failure(failure)),
            (None, None) if task.interrupts.is_empty() => "is pending".to_owned(),
            (None, None) => format!("waits for interrupts {}", task.interrupts.join(" ")),
        };
        lines.push(format!("task {} of {} {status}", task.id, task.node));
    }
    if document.tasks.is_empty() && !document.next.is_empty() {
        lines.push(format!("next        {}", document.next.join(" ")));
    }
    lines.join("\n")
}

pub(super) async fn history(
    client: &Client,
    args: &ThreadHistoryArgs,
    output: Output,
) -> Result<Exit, Error> {
    let thread = encode_segment(&args.thread);
    let (limit, state) = (args.limit, output.json);
    let mut path = format!("/api/v1/threads/{thread}/history?limit={limit}&state={state}");
    if let Some(before) = args.before {
        path.push_str(&format!("&before={before}"));
    }
    if let Some(namespace) = &args.namespace {
        path.push_str(&format!("&namespace={}", encode_segment(namespace)));
    }
    if !args.filters.is_empty() {
        let filter = Value::Object(parse_assignments("--filter KEY=JSON", &args.filters)?);
        path.push_str(&format!("&filter={}", encode_segment(&filter.to_string())));
    }
    let history: Vec<CheckpointDocument> = client.get(&path).await?;
    output.data(&history, |history| {
        let mut table = Table::new(&["id", "step", "source", "at", "changed", "next"]);
        for checkpoint in history {
            table.row([
                checkpoint.id.to_string(),
                checkpoint.step.to_string(),
                format::serde_name(&checkpoint.source),
                format::local_time(checkpoint.at_ms),
                checkpoint.changed.join(" "),
                checkpoint.next.join(" "),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

pub(super) async fn edit(
    client: &Client,
    args: &ThreadEditArgs,
    output: Output,
) -> Result<Exit, Error> {
    let supersteps = match &args.supersteps {
        Some(supersteps) => {
            serde_json::from_value(json_arg::parse(supersteps)?).map_err(|error| Error::Usage {
                message: format!("invalid edits: {error}"),
                hint:
                    "write a list of supersteps, each a list of edits with `as_node` and `values`"
                        .into(),
            })?
        }
        None => vec![vec![build_edit(args)?]],
    };
    let (app, graph) = match args.app.as_deref().map(|app| app.split_once('/')) {
        Some(Some((app, graph))) => (Some(app.to_owned()), Some(graph.to_owned())),
        _ => (args.app.clone(), None),
    };
    let (checkpoint, metadata) = (args.checkpoint, BTreeMap::new());
    let namespace = args.namespace.clone().unwrap_or_default();
    let body = EditsDocument { namespace, checkpoint, supersteps, app, graph, metadata };
    let path = format!("/api/v1/threads/{}/edits", encode_segment(&args.thread));
    let edited: CheckpointDocument = client.post(&path, &body).await?;
    output.data(&edited, render);
    if !edited.next.is_empty() {
        let thread = format::shell_quote(&args.thread);
        Output::note(&format!("hint: continue with `wattle thread resume {thread}`"));
    }
    Ok(Exit::Ok)
}

fn build_edit(args: &ThreadEditArgs) -> Result<EditDocument, Error> {
    let mut values = parse_assignments("--set CHANNEL=JSON", &args.set)?;
    let replaced = parse_assignments("--overwrite CHANNEL=JSON", &args.overwrite)?;
    let overwrite: BTreeSet<String> = replaced.keys().cloned().collect();
    values.extend(replaced);
    let values = values.into_iter().collect();
    Ok(EditDocument { as_node: args.as_node.clone(), values, overwrite })
}

fn parse_assignments(form: &str, entries: &[String]) -> Result<Map<String, Value>, Error> {
    let pair = |entry: &String| {
        let (name, value) = entry.split_once('=').ok_or_else(|| Error::Usage {
            message: format!("`{entry}` has no `=`"),
            hint: format!("write `{form}`"),
        })?;
        Ok((name.to_owned(), json_arg::parse(value)?))
    };
    entries.iter().map(pair).collect()
}

pub(super) async fn fork(
    client: &Client,
    args: ThreadForkArgs,
    output: Output,
) -> Result<Exit, Error> {
    let body = ForkDocument {
        checkpoint: args.checkpoint,
        input: args.input.as_deref().map(json_arg::parse).transpose()?,
        call: args.call.as_deref().map(|call| parse_fork_call(call, &args)).transpose()?,
        copy: args.copy.is_some(),
        thread_id: args.copy.clone().flatten(),
        ..ForkDocument::default()
    };
    // A copy begins with the events of the original thread, which are not shown again.
    let after = follow::last_event_seq(client, &args.thread).await?;
    let path = format!("/api/v1/threads/{}/fork", encode_segment(&args.thread));
    let run: RunDocument = client.post(&path, &body).await?;
    follow::follow(client, &run, after, args.quiet, output).await
}

fn parse_fork_call(call: &str, args: &ThreadForkArgs) -> Result<ForkCallDocument, Error> {
    let identified = match call.parse() {
        Ok(seq) => ForkCallDocument { seq: Some(seq), ..ForkCallDocument::default() },
        Err(_) => {
            let (task, scope, number) = parse_call_id(call)?;
            let (task, number) = (Some(task.to_owned()), Some(number));
            ForkCallDocument { task, scope, call: number, ..ForkCallDocument::default() }
        }
    };
    match (&args.answer, &args.fail) {
        (Some(answer), None) => {
            Ok(ForkCallDocument { answer: Some(json_arg::parse(answer)?), ..identified })
        }
        (None, Some(message)) => {
            let failure = Some(Failure::new(code::UNAVAILABLE, message));
            Ok(ForkCallDocument { failure, ..identified })
        }
        _ => Err(Error::Usage {
            message: "the result of the call is missing".into(),
            hint: "add `--answer JSON`, or `--fail MESSAGE`".into(),
        }),
    }
}
