//! `wattle thread list|show|resume|retry|drain|delete`.

use serde_json::Value;
use wattle_api::document::Page;
use wattle_api::document::run::{ResumeDocument, RunDocument};
use wattle_api::document::thread::{SetAsideDocument, ThreadDocument, ThreadSummary};
use wattle_run::hostcall::runs::OnFailure;
use wattle_run::text::Escaped;

use crate::args::{ThreadListArgs, ThreadResumeArgs};
use crate::client::{Client, encode_segment};
use crate::command::{follow, format, json_arg, run_options};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table, pretty_json};

/// Returns the path of a resource of a thread in the API.
pub(super) fn thread_path(thread: &str, resource: &str) -> String {
    format!("/api/v1/threads/{}/{resource}", encode_segment(thread))
}

pub(super) async fn list(
    client: &Client,
    args: &ThreadListArgs,
    output: Output,
) -> Result<Exit, Error> {
    let mut path = format!("/api/v1/threads?limit={}", args.limit);
    if let Some(app) = &args.app {
        path.push_str(&format!("&app={}", encode_segment(app)));
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
                format::serde_name(&thread.status),
                format::local_time(thread.updated_ms),
            ]);
        }
        table.render()
    });
    Ok(Exit::Ok)
}

/// Prints a thread. `is_verbose` adds the details of its failure to the text; JSON always has them.
pub(super) async fn show(
    client: &Client,
    thread: &str,
    is_verbose: bool,
    output: Output,
) -> Result<Exit, Error> {
    let thread: ThreadDocument =
        client.get(&format!("/api/v1/threads/{}", encode_segment(thread))).await?;
    output.data(&thread, |thread| render(thread, is_verbose));
    Ok(Exit::Ok)
}

fn render(thread: &ThreadDocument, is_verbose: bool) -> String {
    let summary = &thread.summary;
    let mut lines = vec![
        format!("thread   {}", Escaped(&summary.thread)),
        format!("graph    {}/{}", summary.app, summary.graph),
        format!("version  {}", thread.version),
        format!("status   {}", format::serde_name(&summary.status)),
        format!("created  {}", format::local_time(summary.created_ms)),
        format!("updated  {}", format::local_time(summary.updated_ms)),
    ];
    if let Some(expires_ms) = summary.expires_ms {
        lines.push(format!("expires  {}", format::local_time(expires_ms)));
    }
    if let Some(aside) = &thread.set_aside {
        let SetAsideDocument { failure, since_ms, attempts } = aside;
        let since = format::local_time(*since_ms);
        lines.push(format!("aside    since {since}, tried {attempts} time(s)"));
        lines.push(format!("because  {}", format::failure(failure)));
        let thread = format::shell_quote(&summary.thread);
        lines.push(format!("retry the recovery with `wattle thread retry {thread}`"));
        return lines.join("\n");
    }
    if let Some(failure) = &summary.failure {
        lines.push(format!("failure  {}", format::failure(failure)));
        if let Some(details) = failure.details.as_ref().filter(|_| is_verbose) {
            lines.push(format!("details\n{}", format::indent(&pretty_json(details), 2)));
        }
    }
    lines.push(format!("state\n{}", format::indent(&pretty_json(&thread.state), 2)));
    if !thread.interrupts.is_empty() || !thread.next.is_empty() {
        lines.push(follow::render_interrupts(&thread.interrupts, &thread.next));
    }
    lines.join("\n")
}

pub(super) async fn resume(
    client: &Client,
    args: ThreadResumeArgs,
    output: Output,
) -> Result<Exit, Error> {
    let answers: Result<_, _> =
        args.answers.iter().map(|answer| json_arg::parse_answer(answer)).collect();
    let on_failure = if args.reopen { OnFailure::Reopen } else { OnFailure::Keep };
    let options = run_options::to_document(args.options)?;
    let resume = ResumeDocument { answers: answers?, on_failure, options, wait: false };
    let after = follow::last_event_seq(client, &args.thread).await?;
    let path = format!("/api/v1/threads/{}/resume", encode_segment(&args.thread));
    let run: RunDocument = client.post(&path, &resume).await?;
    follow::follow(client, &run, after, args.quiet, output).await
}

/// Retries the recovery of an orphaned run, and follows the run.
pub(super) async fn retry(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let after = follow::last_event_seq(client, thread).await?;
    let path = format!("/api/v1/threads/{}/retry", encode_segment(thread));
    let run: RunDocument = client.post(&path, &serde_json::json!({})).await?;
    follow::follow(client, &run, after, false, output).await
}

/// Drains the run of a thread, and waits until it has stopped.
pub(super) async fn drain(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    let path = format!("/api/v1/threads/{}", encode_segment(thread));
    let view: ThreadDocument = client.get(&path).await?;
    let Some(run) = view.summary.run else {
        return Err(Error::NotFound {
            message: format!("thread `{thread}` has no run"),
            hint: "list threads with `wattle thread list`".into(),
        });
    };
    let run = encode_segment(&run);
    client.post_empty(&format!("{path}/runs/{run}/drain"), &serde_json::json!({})).await?;
    let ended: RunDocument = client.get(&format!("/api/v1/runs/{run}/wait")).await?;
    output.data(&ended, |ended| {
        let (status, thread) = (format::serde_name(&ended.status), format::shell_quote(thread));
        format!("run {} is {status}; continue with `wattle thread resume {thread}`", ended.run)
    });
    Ok(Exit::Ok)
}

pub(super) async fn delete(client: &Client, thread: &str, output: Output) -> Result<Exit, Error> {
    client.delete(&format!("/api/v1/threads/{}", encode_segment(thread))).await?;
    let deleted: Value = serde_json::json!({ "deleted": thread });
    output.data(&deleted, |_| format!("deleted thread {}", Escaped(thread)));
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_details_of_a_failure_are_shown_on_request() {
        let stack = json!(["price (src/index.ts:7)"]);
        let failure = json!({ "code": "internal", "message": "no", "details": { "stack": stack } });
        let thread = json!({
            "thread": "t", "app": "shop", "graph": "Sell", "status": "error", "created_ms": 0,
            "updated_ms": 0, "version": "4f2a", "state": {}, "next": [], "interrupts": [],
            "failure": failure,
        });
        let thread: ThreadDocument = serde_json::from_value(thread).unwrap();
        let shown = render(&thread, true);
        let details =
            "\ndetails\n  {\n    \"stack\": [\n      \"price (src/index.ts:7)\"\n    ]\n  }\n";
        assert!(shown.contains(&format!("\nfailure  internal: no{details}state\n")), "{shown}");
        assert!(!render(&thread, false).contains("details"));
    }

    #[test]
    fn no_text_of_a_guest_or_client_begins_a_line() {
        let failure = json!({ "code": "trap", "message": "boom\nstatus   completed" });
        let mut thread = json!({
            "thread": "it's\nstatus   idle", "app": "shop", "graph": "Sell", "status": "error",
            "created_ms": 0, "updated_ms": 0, "version": "4f2a", "state": {}, "next": [],
            "interrupts": [], "failure": failure,
        });
        let rendered =
            |thread: &Value| render(&serde_json::from_value(thread.clone()).unwrap(), false);
        let shown = rendered(&thread);
        assert!(shown.contains("\nfailure  trap: boom\\nstatus   completed\n"), "{shown}");
        thread["set_aside"] = json!({ "failure": failure, "since_ms": 0, "attempts": 2 });
        let shown = rendered(&thread);
        assert!(shown.contains("\nbecause  trap: boom\\nstatus   completed\n"), "{shown}");
        let retry = r"`wattle thread retry 'it'\''s\nstatus   idle'`";
        assert!(shown.ends_with(retry), "{shown}");
    }
}
