//! `wattle thread migrate`: moves a thread, or all threads of an app, to the loaded code.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use wattle_api::document::Page;
use wattle_api::document::app::{AppDocument, GraphDocument};
use wattle_api::document::thread::ThreadSummary;
use wattle_run::engine::migrate::MigrationReport;
use wattle_run::text::Escaped;

use crate::args::ThreadMigrateArgs;
use crate::client::{Client, encode_segment};
use crate::command::follow::has_loaded_version;
use crate::command::json_arg;
use crate::command::thread::thread_path;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Number of threads in a page of the list. The threads of a page are migrated before the next page
/// is read, so a longer page would contain older states.
const PAGE_THREADS: usize = 100;

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
        set.insert(channel, json_arg::parse(value)?);
    }
    let body = json!({ "dry_run": args.dry_run, "drop": args.drop, "set": set });
    if let Some(app) = &args.app {
        let threads = AppThreads { app, graph: args.graph.as_deref() };
        return migrate_app(client, threads, &body, args.dry_run, output).await;
    }
    let thread = args.thread.as_deref().unwrap_or_default();
    let report: MigrationReport = client.post(&thread_path(thread, "migrate"), &body).await?;
    output.data(&report, render);
    Ok(if report.obstacles.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn render(report: &MigrationReport) -> String {
    if report.from == report.to {
        return format!("the thread already has the loaded version {}", report.to);
    }
    let mut lines = vec![format!("from  {}", report.from), format!("to    {}", report.to)];
    lines.extend(report.changes.iter().map(|change| format!("change    {change}")));
    lines.extend(report.obstacles.iter().map(|obstacle| format!("obstacle  {obstacle}")));
    lines.push(match (report.applied, report.obstacles.is_empty()) {
        (true, _) => "migrated".into(),
        (false, true) => "nothing was changed: this was a dry run".into(),
        (false, false) => "nothing was changed".into(),
    });
    lines.join("\n")
}

/// The threads of an app, or those of one of its graphs.
#[derive(Clone, Copy)]
struct AppThreads<'a> {
    app: &'a str,
    graph: Option<&'a str>,
}

impl AppThreads<'_> {
    /// Checks that the app and the graph are loaded.
    async fn check_loaded(self, client: &Client) -> Result<(), Error> {
        let path = format!("/api/v1/apps/{}", encode_segment(self.app));
        match self.graph {
            Some(graph) => {
                let path = format!("{path}/graphs/{}", encode_segment(graph));
                client.get::<GraphDocument>(&path).await.map(drop)
            }
            None => client.get::<AppDocument>(&path).await.map(drop),
        }
    }

    /// Returns the page of the list after a cursor: the threads whose last update is not before a
    /// time, newest update first.
    async fn page(
        self,
        client: &Client,
        updated_from_ms: Option<i64>,
        cursor: Option<&str>,
    ) -> Result<Page<ThreadSummary>, Error> {
        let app = encode_segment(self.app);
        let mut path = format!("/api/v1/threads?limit={PAGE_THREADS}&app={app}");
        if let Some(graph) = self.graph {
            path.push_str(&format!("&graph={}", encode_segment(graph)));
        }
        if let Some(updated_from_ms) = updated_from_ms {
            path.push_str(&format!("&updated_from_ms={updated_from_ms}"));
        }
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", encode_segment(cursor)));
        }
        client.get(&path).await
    }
}

/// The result of a migration of the threads of an app.
#[derive(Debug, Default, Serialize)]
struct AppMigrationReport {
    /// True if nothing was changed.
    dry_run: bool,
    /// Number of threads that were migrated; on a dry run, of those that can be.
    migrated: usize,
    /// Number of threads that have the loaded version.
    unchanged: usize,
    /// Threads that cannot be migrated.
    not_migrated: Vec<NotMigrated>,
}

#[derive(Debug, Serialize)]
struct NotMigrated {
    thread: String,
    reason: String,
}

/// The result of a migration of one of the threads.
enum Outcome {
    Migrated,
    Unchanged,
    /// The reason why the thread cannot be migrated.
    Impossible(String),
}

/// Migrates the threads of an app page by page. A thread that cannot be migrated does not stop the
/// others.
///
/// A thread that changes meanwhile moves to the front of the list, before the current page. So the
/// list is read again from the newest update of the former reading, until it has no other threads.
/// Threads that are created meanwhile are left out: their code is the loaded one.
async fn migrate_app(
    client: &Client,
    threads: AppThreads<'_>,
    body: &Value,
    dry_run: bool,
    output: Output,
) -> Result<Exit, Error> {
    threads.check_loaded(client).await?;
    let mut report = AppMigrationReport { dry_run, ..AppMigrationReport::default() };
    let mut seen = BTreeSet::new();
    let mut start_ms = None;
    let mut from_ms = None;
    loop {
        let (seen_before, mut newest_ms, mut cursor) = (seen.len(), from_ms, None::<String>);
        loop {
            let page = threads.page(client, from_ms, cursor.as_deref()).await?;
            for thread in page.items {
                newest_ms = newest_ms.max(Some(thread.updated_ms));
                let start_ms = *start_ms.get_or_insert(thread.updated_ms);
                if thread.created_ms <= start_ms && seen.insert(thread.thread.clone()) {
                    let outcome = migrate_one(client, &thread.thread, body).await?;
                    report.add(thread.thread, outcome, output);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        if seen.len() == seen_before {
            break;
        }
        from_ms = newest_ms;
    }
    output.data(&report, AppMigrationReport::render);
    Ok(if report.not_migrated.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Migrates one of several threads.
///
/// # Errors
///
/// The errors that each of the threads would have: without a permission, without a server, or with
/// more requests than the key may send.
async fn migrate_one(client: &Client, thread: &str, body: &Value) -> Result<Outcome, Error> {
    match client.post::<MigrationReport>(&thread_path(thread, "migrate"), body).await {
        Ok(report) if report.from == report.to => Ok(Outcome::Unchanged),
        Ok(report) if report.obstacles.is_empty() => Ok(Outcome::Migrated),
        Ok(report) => {
            let obstacles: Vec<String> = report.obstacles.iter().map(ToString::to_string).collect();
            Ok(Outcome::Impossible(obstacles.join("; ")))
        }
        Err(Error::Problem(problem)) if !matches!(problem.status, 401 | 403 | 429) => {
            // A thread with a running run is refused, whatever its version is.
            let is_current = has_loaded_version(client, thread).await == Some(true);
            Ok(if is_current { Outcome::Unchanged } else { Outcome::Impossible(problem.detail) })
        }
        Err(error) => Err(error),
    }
}

impl AppMigrationReport {
    /// Adds a thread. Prints it at once if it cannot be migrated, unless the report is printed as
    /// JSON.
    fn add(&mut self, thread: String, outcome: Outcome, output: Output) {
        match outcome {
            Outcome::Migrated => self.migrated += 1,
            Outcome::Unchanged => self.unchanged += 1,
            Outcome::Impossible(reason) => {
                if !output.json {
                    let (thread, reason) = (Escaped(&thread), Escaped(&reason));
                    Output::line(&format!("thread `{thread}` cannot be migrated: {reason}"));
                }
                self.not_migrated.push(NotMigrated { thread, reason });
            }
        }
    }

    fn render(&self) -> String {
        let Self { dry_run, migrated, unchanged, not_migrated } = self;
        let verb = if *dry_run { "would migrate" } else { "migrated" };
        format!("{verb} {migrated}, unchanged {unchanged}, not migrated {}", not_migrated.len())
    }
}
