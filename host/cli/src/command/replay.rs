//! `wattle thread export` and `wattle replay`: a thread as a file, and once more from its journal.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use futures::TryStreamExt as _;
use serde_json::Value;
use wattle_run::export::Export;
use wattle_run::offline::{Replay, replay};

use crate::args::{ReplayArgs, ThreadExportArgs};
use crate::client::{Client, Needs, segment};
use crate::command::words;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;
use crate::wire::offline::OfflineCode;

fn path(thread: &str) -> String {
    format!("/api/v1/threads/{}/export", segment(thread))
}

pub(super) async fn export(
    client: &Client,
    args: &ThreadExportArgs,
    output: Output,
) -> Result<Exit, Error> {
    let mut pieces = client.pieces(&path(&args.thread)).await?;
    let Some(file) = &args.file else {
        let mut text = Vec::new();
        while let Some(piece) = pieces.try_next().await? {
            text.extend_from_slice(&piece);
        }
        Output::raw(&text);
        return Ok(Exit::Ok);
    };
    // Renamed into place when whole.
    let draft = file.with_extension("draft");
    let mut bytes = 0;
    {
        let mut out = std::fs::File::create(&draft).map_err(Error::file("write", &draft))?;
        while let Some(piece) = pieces.try_next().await? {
            bytes += piece.len();
            out.write_all(&piece).map_err(Error::file("write", &draft))?;
        }
        out.sync_all().map_err(Error::file("write", &draft))?;
    }
    std::fs::rename(&draft, file).map_err(Error::file("write", file))?;
    let done = serde_json::json!({ "file": file, "bytes": bytes });
    output.data(&done, |_| format!("{} in `{}`", words::size(bytes), file.display()));
    Ok(Exit::Ok)
}

/// Executes a thread of the store, or one in a file, once more. Nothing outside is asked.
pub(super) async fn rerun(
    config: Config,
    args: &ReplayArgs,
    output: Output,
) -> Result<Exit, Error> {
    let text = if Path::new(&args.target).is_file() {
        std::fs::read_to_string(&args.target).map_err(Error::file("read", &args.target))?
    } else {
        let client = Client::open(config.clone(), Needs::Store).await?;
        let text = whole(&client, &args.target).await;
        client.close().await;
        text?
    };
    let export = Export::read(&text).map_err(|error| Error::Usage {
        message: error.to_string(),
        hint: "name a thread, or a file that `wattle thread export` wrote".into(),
    })?;
    let code = Box::pin(OfflineCode::open(config)).await?;
    let replayed = Box::pin(rerun_with(&code, &export)).await?;
    output.data(&replayed, |replayed| in_words(&export, replayed));
    Ok(if replayed.divergences.is_empty() { Exit::Ok } else { Exit::Failed })
}

async fn whole(client: &Client, thread: &str) -> Result<String, Error> {
    let pieces = client.pieces(&path(thread)).await?;
    let pieces: Vec<_> = pieces.try_collect().await?;
    let text = pieces.concat();
    String::from_utf8(text).map_err(|error| Error::Server {
        address: "the server".into(),
        message: format!("its export is not text: {error}"),
    })
}

async fn rerun_with(code: &OfflineCode, export: &Export) -> Result<Replay, Error> {
    let thread = &export.header.thread;
    let app = code.app_of(thread).await.ok_or_else(|| Error::Usage {
        message: format!(
            "the code of the thread is not here: version {} of graph `{}` in app `{}`",
            thread.version, thread.graph, thread.app
        ),
        hint: "put that version of the app into the plugins folder, or use the data folder of \
               the host that ran it"
            .into(),
    })?;
    Box::pin(replay(export, app, code.ports.clone())).await.map_err(|failure| Error::Usage {
        message: failure.message,
        hint: "`wattle trace --verify` checks threads of the store".into(),
    })
}

fn in_words(export: &Export, replayed: &Replay) -> String {
    let mut lines = Vec::new();
    for divergence in &replayed.divergences {
        let node = divergence.node.as_ref().map(|node| format!("node `{node}`, "));
        let call = divergence.call.map(|call| format!("call {call}, ")).unwrap_or_default();
        let place = divergence.namespace.as_str();
        let place = if place.is_empty() { String::new() } else { format!(" in `{place}`") };
        lines.push(format!(
            "{}{call}checkpoint {}{place}: {}",
            node.unwrap_or_default(),
            divergence.checkpoint,
            divergence.message
        ));
        lines.push(format!("  then  {}", flat(&divergence.recorded)));
        lines.push(format!("  now   {}", flat(&divergence.now)));
    }
    let reasons: BTreeSet<&str> = replayed.skipped.iter().map(|it| it.reason.as_str()).collect();
    for reason in reasons {
        let count = replayed.skipped.iter().filter(|it| it.reason == reason).count();
        lines.push(format!("not executed: {count}, since {reason}"));
    }
    lines.push(format!(
        "thread {}: {} tasks and {} checkpoints are the same, {} host calls answered by the \
         journal, {} differences",
        export.header.thread.id,
        replayed.tasks,
        replayed.checkpoints,
        replayed.calls,
        replayed.divergences.len()
    ));
    lines.join("\n")
}

/// A document on one line, cut where a terminal would be full of it.
fn flat(value: &Value) -> String {
    const LONGEST: usize = 400;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
