//! `wattle thread export` and `wattle replay`: exports a thread to a file, and executes it from its
//! journals.

mod difference;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write as _;
use std::path::Path;

use futures::TryStreamExt as _;
use wattle_run::export::{Export, ExportParts};
use wattle_run::limit::EXPORT_BYTES;
use wattle_run::replay::{Against, Counts, Divergence, Replay, replay_thread};

use crate::args::{ReplayArgs, ThreadExportArgs};
use crate::client::{Client, Preload, encode_segment};
use crate::command::format;
use crate::command::replay::difference::{Difference, Differences};
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
        "thread {}: {} {} the same, {}",
        export.header.thread.id,
        format_counts(Counts { checkpoints, tasks, calls }),
        if checkpoints + tasks + calls > 1 { "are" } else { "is" },
        format_count(replayed.divergences.len(), "difference")
    ));
    lines.join("\n")
}

/// Describes the differences of a replay. Calls that differ only where an earlier call of the same
/// function differs are counted with that call.
pub(super) fn differences(replayed: &Replay) -> Vec<String> {
    let mut shown: Vec<ShownDivergence<'_>> = Vec::new();
    let mut index_by_places: BTreeMap<(&str, Vec<String>), usize> = BTreeMap::new();
    for divergence in &replayed.divergences {
        let new = ShownDivergence::of(divergence);
        let Some((function, places)) = new.function.zip(new.differences.places()) else {
            shown.push(new);
            continue;
        };
        match index_by_places.entry((function, places.to_vec())) {
            Entry::Occupied(index) => shown[*index.get()].repeats += 1,
            Entry::Vacant(index) => {
                index.insert(shown.len());
                shown.push(new);
            }
        }
    }
    shown.iter().flat_map(ShownDivergence::lines).collect()
}

/// A divergence with what a report shows of it.
struct ShownDivergence<'r> {
    divergence: &'r Divergence,
    /// Function of the call, if only its request differs.
    function: Option<&'r str>,
    differences: Differences<'r>,
    /// Number of later calls of the function that differ in the same places.
    repeats: usize,
}

impl<'r> ShownDivergence<'r> {
    fn of(divergence: &'r Divergence) -> Self {
        let Divergence { call, recorded: then, now, .. } = divergence;
        let function = call.and_then(|_| now["function"].as_str());
        let function = function.filter(|now| then["function"] == *now);
        let differences = match function {
            Some(_) => Differences::between(&then["request"], &now["request"]),
            None if call.is_some() => Differences::default(),
            None => Differences::between(then, now),
        };
        Self { divergence, function, differences, repeats: 0 }
    }

    fn lines(&self) -> Vec<String> {
        let Divergence { namespace, checkpoint, node, call, message, recorded, now, .. } =
            self.divergence;
        let node = node.as_ref().map(|node| format!("node `{node}`, ")).unwrap_or_default();
        let call = call.map(|call| format!("call {call}, ")).unwrap_or_default();
        let place = match namespace.as_str() {
            "" => String::new(),
            namespace => format!(" in `{namespace}`"),
        };
        let mut lines = vec![format!("{node}{call}checkpoint {checkpoint}{place}: {message}")];
        let difference = match (&self.differences.first, self.function) {
            (Some(first), _) => first.lines(),
            (None, Some(_)) => {
                vec!["the journal does not have the part of the request that differs".into()]
            }
            (None, None) => Difference::whole(recorded, now).lines(),
        };
        lines.extend(difference.into_iter().map(|line| format!("  {line}")));
        if self.differences.count > 1 {
            lines.push(format!("  further differences: {}", self.differences.count - 1));
        }
        if self.repeats > 0 {
            lines.push(format!("  later calls that differ only there: {}", self.repeats));
        }
        lines
    }
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

/// Formats numbers, without those that are 0.
fn format_counts(counts: Counts) -> String {
    let Counts { checkpoints, tasks, calls } = counts;
    let counts = [(checkpoints, "superstep"), (tasks, "task"), (calls, "host call")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> = counts.map(|(count, name)| format_count(count, name)).collect();
    match parts.pop() {
        None => "nothing".to_owned(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} and {last}", parts.join(", ")),
    }
}

fn format_count(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}
