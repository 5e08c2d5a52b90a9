//! `wattle thread export` and `wattle replay`: exports a thread to a file, and executes it from its
//! journals.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use futures::TryStreamExt as _;
use serde_json::Value;
use wattle_run::export::{Export, ExportParts};
use wattle_run::limit::EXPORT_BYTES;
use wattle_run::replay::{Against, Counts, Replay, replay_thread};

use crate::args::{ReplayArgs, ThreadExportArgs};
use crate::client::{Client, Preload, encode_segment};
use crate::command::format;
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::host::replay::ReplayHost;
use crate::output::Output;

fn export_path(thread: &str, parts: ExportParts) -> String {
    let ExportParts { code, blobs } = parts;
    format!("/api/v1/threads/{}/export?code={code}&blobs={blobs}", encode_segment(thread))
}

fn test_path(thread: &str, blobs: bool) -> String {
    format!("/api/v1/threads/{}/test?blobs={blobs}", encode_segment(thread))
}

pub(super) async fn export(
    client: &Client,
    args: &ThreadExportArgs,
    output: Output,
) -> Result<Exit, Error> {
    let blobs = !args.no_blobs;
    let path = if args.as_test {
        test_path(&args.thread, blobs)
    } else {
        export_path(&args.thread, ExportParts { code: !args.no_code, blobs })
    };
    let mut chunks = client.get_stream(&path).await?;
    let Some(file) = &args.file else {
        let mut text = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            text.extend_from_slice(&chunk);
        }
        Output::documents(&text);
        return Ok(Exit::Ok);
    };
    // The file is renamed when it is complete, so that a reader never sees an incomplete file.
    let draft = file.with_extension("draft");
    let mut bytes = 0;
    {
        let mut out = std::fs::File::create(&draft).map_err(Error::file("write", &draft))?;
        while let Some(chunk) = chunks.try_next().await? {
            bytes += chunk.len();
            out.write_all(&chunk).map_err(Error::file("write", &draft))?;
        }
        out.sync_all().map_err(Error::file("write", &draft))?;
    }
    std::fs::rename(&draft, file).map_err(Error::file("write", file))?;
    let done = serde_json::json!({ "file": file, "bytes": bytes });
    output.data(&done, |_| format!("{} in `{}`", format::byte_size(bytes), file.display()));
    Ok(Exit::Ok)
}

/// Executes a thread of the store or of a file again, without external calls.
pub(super) async fn replay(
    config: Config,
    args: &ReplayArgs,
    output: Output,
) -> Result<Exit, Error> {
    let text = if Path::new(&args.target).is_file() {
        read(Path::new(&args.target))?
    } else {
        let client = Client::open(config.clone(), Preload::Store).await?;
        // The export contains neither code nor blobs, because this process can read them from the
        // data folder.
        let text = export_text(&client, &args.target, ExportParts::default()).await;
        client.close().await;
        text?
    };
    let export = Export::read(&text).map_err(|error| Error::Usage {
        message: error.to_string(),
        hint: "name a thread, or a file that `wattle thread export` wrote".into(),
    })?;
    let code = Box::pin(ReplayHost::open(config)).await?;
    let replayed = Box::pin(replay_export(&code, &export)).await?;
    output.data(&replayed, |replayed| render(&export, replayed));
    Ok(if replayed.divergences.is_empty() { Exit::Ok } else { Exit::Failed })
}

/// Reads the file of an export.
pub(super) fn read(file: &Path) -> Result<String, Error> {
    let bytes = std::fs::metadata(file).map_err(Error::file("read", file))?.len();
    if bytes > EXPORT_BYTES {
        return Err(Error::Usage {
            message: format!("`{}` has {bytes} bytes, which is too large", file.display()),
            hint: format!("the maximum is {EXPORT_BYTES} bytes"),
        });
    }
    std::fs::read_to_string(file).map_err(Error::file("read", file))
}

/// Returns the export of a thread as one text.
async fn export_text(client: &Client, thread: &str, parts: ExportParts) -> Result<String, Error> {
    let chunks = client.get_stream(&export_path(thread, parts)).await?;
    let chunks: Vec<_> = chunks.try_collect().await?;
    let text = chunks.concat();
    String::from_utf8(text).map_err(|error| Error::Server {
        address: "the server".into(),
        message: format!("the export is not UTF-8: {error}"),
    })
}

async fn replay_export(code: &ReplayHost, export: &Export) -> Result<Replay, Error> {
    let thread = &export.header.thread;
    let found = code
        .load_app(export)
        .await
        .map_err(|message| Error::Usage { message, hint: "export the thread again".into() })?;
    let app = found.ok_or_else(|| Error::Usage {
        message: format!(
            "the code of the thread is missing: version {} of graph `{}` in app `{}`",
            thread.version, thread.graph, thread.app
        ),
        hint: "export the thread with its code, put that version of the app into the plugins \
               folder, or use the data folder of the host that ran it"
            .into(),
    })?;
    let ports = code.ports_with_blobs(export).await;
    Box::pin(replay_thread(export, app, ports, Against::Pinned)).await.map_err(|failure| {
        Error::Usage {
            message: failure.message,
            hint: "`wattle trace --verify` checks threads of the store".into(),
        }
    })
}

fn render(export: &Export, replayed: &Replay) -> String {
    let mut lines = differences(replayed);
    lines.extend(skipped_parts(replayed).map(|part| format!("not compared: {part}")));
    let Replay { checkpoints, tasks, calls, .. } = *replayed;
    lines.push(format!(
        "thread {}: {} are the same, {} differences",
        export.header.thread.id,
        format_counts(Counts { checkpoints, tasks, calls }),
        replayed.divergences.len()
    ));
    lines.join("\n")
}

/// Describes the differences of a replay.
pub(super) fn differences(replayed: &Replay) -> Vec<String> {
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
        lines.push(format!("  then  {}", to_single_line(&divergence.recorded)));
        lines.push(format!("  now   {}", to_single_line(&divergence.now)));
    }
    lines
}

/// Describes the parts of a thread that a replay did not compare, one for each reason.
pub(super) fn skipped_parts(replayed: &Replay) -> impl Iterator<Item = String> {
    let mut counts_by_reason: BTreeMap<&str, Counts> = BTreeMap::new();
    for skipped in &replayed.skipped {
        *counts_by_reason.entry(&skipped.reason).or_default() += skipped.left_out;
    }
    counts_by_reason
        .into_iter()
        .map(|(reason, counts)| format!("{}, because {reason}", format_counts(counts)))
}

fn format_counts(counts: Counts) -> String {
    let Counts { checkpoints, tasks, calls } = counts;
    format!("{checkpoints} supersteps, {tasks} tasks and {calls} host calls")
}

/// Formats a value on one line, shortened to the width of a terminal.
fn to_single_line(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 400;
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
