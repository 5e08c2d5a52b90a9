//! `wattle thread migrate|copy|prune`.

use std::collections::BTreeMap;

use serde_json::json;
use wattle_api::native::maintenance::CopiedDocument;
use wattle_run::engine::migrate::MigrationReport;

use crate::args::{StrategyArg, ThreadCopyArgs, ThreadMigrateArgs, ThreadPruneArgs};
use crate::client::Client;
use crate::command::json_arg;
use crate::command::thread::thread_path;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

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
    let report: MigrationReport = client.post(&thread_path(&args.thread, "migrate"), &body).await?;
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

pub(super) async fn copy(
    client: &Client,
    args: &ThreadCopyArgs,
    output: Output,
) -> Result<Exit, Error> {
    let body = json!({ "thread_id": args.to });
    let copied: CopiedDocument = client.post(&thread_path(&args.thread, "copy"), &body).await?;
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
    client
        .post_empty(&thread_path(&args.thread, "prune"), &json!({ "strategy": strategy }))
        .await?;
    output.data(&json!({ "pruned": args.thread }), |_| format!("pruned thread {}", args.thread));
    Ok(Exit::Ok)
}
