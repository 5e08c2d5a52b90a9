//! `wattle thread`: lists, shows, resumes and deletes threads.

use serde_json::Value;
use wattle_api::document::Page;
use wattle_api::document::run::{ResumeDocument, RunDocument};
use wattle_api::document::thread::{SetAsideDocument, ThreadDocument, ThreadSummary};
use wattle_run::hostcall::runs::OnFailure;

use crate::args::{ThreadListArgs, ThreadResumeArgs};
use crate::client::{Client, segment};
use crate::command::{control, follow, input, words};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table};

pub(super) async fn list(
    client: &Client,
    args: &ThreadListArgs,
    output: Output,
) -> Result<Exit, Error> {
    let mut path = format!("/api/v1/threads?limit={}", args.limit);
    if let Some(app) = &args.app {
        path.push_str(&format!("&app={}", segment(app)));
    }
    if let Some(status) = args.status {
        path.push_str(&format!("&status={}", format!("{status:?}").to_lowercase()));
    }
    let page: Page<ThreadSummary> = client.get(&path).await?;
    output.data(&page, |page| {
        let mut table = Table::new(&["thread", "app", "graph", "status", "updated"]);
        for thread in &page.items {
            table.row([
                thread.thread.clone(),
                thread.app.clone(),
                thread.graph.clone(),
                words::word(&thread.status),
                words::instant(thread.updated_ms),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

pub(super) async fn show(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let thread: ThreadDocument =
        client.get(&format!("/api/v1/threads/{}", segment(thread))).await?;
    output.data(&thread, in_words);
    Ok(Exit::Ok)
}

fn in_words(thread: &ThreadDocument) -> String {
    let summary = &thread.summary;
    let mut lines = vec![
        format!("thread   {}", summary.thread),
        format!("graph    {}/{}", summary.app, summary.graph),
        format!("version  {}", thread.version),
        format!("status   {}", words::word(&summary.status)),
        format!("created  {}", words::instant(summary.created_ms)),
        format!("updated  {}", words::instant(summary.updated_ms)),
    ];
    if let Some(expires_ms) = summary.expires_ms {
        lines.push(format!("expires  {}", words::instant(expires_ms)));
    }
    if let Some(aside) = &thread.set_aside {
        let SetAsideDocument { failure, since_ms, attempts } = aside;
        let since = words::instant(*since_ms);
        lines.push(format!("aside    since {since}, tried {attempts} time(s)"));
        lines.push(format!("because  {}: {}", failure.code, failure.message));
        let thread = &summary.thread;
        lines.push(format!("retry the recovery with `wattle thread retry {thread}`"));
        return lines.join("\n");
    }
    if let Some(failure) = &thread.failure {
        lines.push(format!("failure  {}: {}", failure.code, failure.message));
    }
    lines.push(format!("state\n{}", words::indented(&words::pretty(&thread.state), 2)));
    if !thread.interrupts.is_empty() || !thread.next.is_empty() {
        lines.push(follow::questions(&thread.interrupts, &thread.next));
    }
    lines.join("\n")
}

pub(super) async fn resume(
    client: &Client,
    args: ThreadResumeArgs,
    output: Output,
) -> Result<Exit, Error> {
    let answers: Result<_, _> = args.answers.iter().map(|answer| input::answer(answer)).collect();
    let on_failure = if args.reopen { OnFailure::Reopen } else { OnFailure::Keep };
    let options = control::options(args.options)?;
    let resume = ResumeDocument { answers: answers?, on_failure, options, wait: false };
    let after = follow::newest_event(client, &args.thread).await?;
    let path = format!("/api/v1/threads/{}/resume", segment(&args.thread));
    let run: RunDocument = client.post(&path, &resume).await?;
    follow::follow(client, &run, after, args.quiet, output).await
}

/// Retries the recovery of an orphaned run, and follows the run.
pub(super) async fn retry(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let after = follow::newest_event(client, thread).await?;
    let path = format!("/api/v1/threads/{}/retry", segment(thread));
    let run: RunDocument = client.post(&path, &serde_json::json!({})).await?;
    follow::follow(client, &run, after, false, output).await
}

pub(super) async fn delete(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    client.delete(&format!("/api/v1/threads/{}", segment(thread))).await?;
    let deleted: Value = serde_json::json!({ "deleted": thread });
    output.data(&deleted, |_| format!("deleted thread {thread}"));
    Ok(Exit::Ok)
}
