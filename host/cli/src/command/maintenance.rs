//! `wattle thread copy|prune`.

use serde_json::json;
use wattle_api::native::maintenance::CopiedDocument;

use crate::args::{StrategyArg, ThreadCopyArgs, ThreadPruneArgs};
use crate::client::Client;
use crate::command::thread::thread_path;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

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
