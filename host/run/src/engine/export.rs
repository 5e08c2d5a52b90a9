//! Exports a thread as a stream of JSON lines.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use serde::Serialize;
use tokio::task::spawn_blocking;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Digest, ThreadId};

use super::{Engine, thread_not_found};
use crate::app::App;
use crate::export::test_case::make_test;
use crate::export::{
    BlobFile, CodeDigests, CompressedBytes, EXPORT_FORMAT, ExportHeader, ExportLine, ExportParts,
    OperatorPolicy,
};
use crate::ports::blob::BlobRef;
use crate::ports::store::{RunRecord, StoredBatch, ThreadHead, ThreadRecord, ThreadStatus};
use crate::ports::{BlobStore, Store};

/// Number of runs that are read at once. Most threads have fewer runs, so one page has them all.
const EXPORTED_RUNS: usize = 10_000;

/// Maximum number of bytes of batches that are read at once.
const PAGE_BYTES: usize = 4 << 20;

impl Engine {
    /// Returns the lines of an export of a thread: its log and the requested parts.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is active, because its further events would be missing, or
    /// if runs are added or deleted while a long list of runs is read; `unavailable` if the code is
    /// requested and cannot be loaded. An item of the stream is an error if the store fails during
    /// the export.
    pub async fn export(
        &self,
        thread: &ThreadId,
        parts: ExportParts,
    ) -> Result<BoxStream<'static, Result<Bytes, Failure>>, Failure> {
        self.export_lines(thread, parts, false).await
    }

    /// Returns the lines of a thread as a test of later code: its log and, with `blobs`, the blobs
    /// that the log mentions. A test leaves out what another version of the code does not need to
    /// execute the thread again: the code, metadata of clients, and the principals of requests.
    /// Seals cover the principals, so a test has no seals, and a later change of the file is not
    /// detected.
    ///
    /// What nodes read stays: inputs, context, tenant, answers and results of calls.
    ///
    /// # Errors
    ///
    /// See [`Engine::export`].
    pub async fn export_test(
        &self,
        thread: &ThreadId,
        blobs: bool,
    ) -> Result<BoxStream<'static, Result<Bytes, Failure>>, Failure> {
        self.export_lines(thread, ExportParts { code: false, blobs }, true).await
    }

    async fn export_lines(
        &self,
        thread: &ThreadId,
        parts: ExportParts,
        is_test: bool,
    ) -> Result<BoxStream<'static, Result<Bytes, Failure>>, Failure> {
        let head = self.visible_thread(thread).await?.ok_or_else(|| thread_not_found(thread))?;
        if head.record.status == ThreadStatus::Running {
            let text = format!("a run is active on thread `{thread}`; wait for it, then export");
            return Err(Failure::new(code::BUSY, text));
        }
        let record = &head.record;
        // A test has no digests of the code.
        let app = if is_test { None } else { self.exported_app(record, parts).await? };
        let header = self.header(&head, app.as_deref(), parts).await?;
        let mut first = json_line(&if is_test { header.into_test() } else { header })?;
        if parts.code {
            let app = app.ok_or_else(|| code_unavailable(record))?;
            first.extend(self.code_lines(&app, record).await?);
        }
        let lines = ExportStream {
            store: self.0.ports.store.clone(),
            blobs: parts.blobs.then(|| self.0.ports.blobs.clone()),
            thread: thread.clone(),
            from: None,
            log_end: LogEnd::of(&head),
            mentioned: BTreeSet::new(),
            is_test,
        };
        let rest = futures::stream::try_unfold(lines, |mut lines| async move {
            let next = lines.next().await?;
            Ok(next.map(|text| (text, lines)))
        });
        let first = futures::stream::iter([Ok(Bytes::from(first))]);
        Ok(first.chain(rest).boxed())
    }

    /// Returns the app of a thread. If the export has no code, code that cannot be loaded is no
    /// error: the header has no digests then.
    async fn exported_app(
        &self,
        record: &ThreadRecord,
        parts: ExportParts,
    ) -> Result<Option<Arc<App>>, Failure> {
        let catalog = &self.0.catalog;
        let version = catalog.load_version(&record.app, &record.graph, record.version).await;
        let version = if parts.code { version? } else { version.unwrap_or_default() };
        Ok(version.map(|(app, _)| app))
    }

    async fn header(
        &self,
        head: &ThreadHead,
        app: Option<&App>,
        parts: ExportParts,
    ) -> Result<ExportHeader, Failure> {
        let record = &head.record;
        let runs = self.runs_without_input(&record.id).await?;
        let code = app.map(|app| CodeDigests {
            app: app.name.clone(),
            graphs: app
                .graphs
                .iter()
                .map(|(name, graph_version)| (name.clone(), graph_version.version))
                .collect(),
            plugins: app
                .plugins
                .iter()
                .map(|(name, plugin)| (name.clone(), plugin.info().digest))
                .collect(),
        });
        Ok(ExportHeader {
            wattle_export: EXPORT_FORMAT,
            thread: record.clone(),
            runs,
            code,
            parts,
            time_zone: Some(self.0.ports.clock.time_zone().to_owned()),
            last_seq: head.last_seq,
            pruned_seq: head.pruned_seq,
            seal: head.seal,
            pruned_seal: head.pruned_seal,
        })
    }

    /// Returns the runs of a thread, oldest first. Removes the inputs of runs that have not
    /// started, because these inputs are not part of the log.
    async fn runs_without_input(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, Failure> {
        let store = &self.0.ports.store;
        let mut runs: Vec<RunRecord> = Vec::new();
        let mut is_last = false;
        while !is_last {
            let page = store.newest_runs(thread, runs.len(), EXPORTED_RUNS).await?;
            if let Some(last) = runs.last() {
                // A run that was added or deleted meanwhile has moved the other runs in the list.
                let found = store.newest_runs(thread, runs.len() - 1, 1).await?.items;
                if found.first().is_none_or(|run| run.id != last.id) {
                    return Err(changed(thread));
                }
            }
            is_last = page.is_last || page.items.is_empty();
            for mut run in page.items {
                if !run.has_started() {
                    run.spec = run.spec.map(|spec| Box::new(spec.without_input()));
                }
                runs.push(run);
            }
        }
        runs.reverse();
        Ok(runs)
    }

    /// Returns the lines with the code of an app, and with its grants and settings.
    async fn code_lines(&self, app: &Arc<App>, record: &ThreadRecord) -> Result<Vec<u8>, Failure> {
        let source = self.0.catalog.source().ok_or_else(|| code_unavailable(record))?;
        let files = source.files(app).await?;
        let mut text = on_blocking_pool(move || {
            let files = files.into_iter().map(|file| json_line(&ExportLine::Code(file)));
            Ok(files.collect::<Result<Vec<_>, _>>()?.concat())
        })
        .await?;
        let grants = app.plugins.keys().map(|name| (name.clone(), app.grants_of(name)));
        let rules = OperatorPolicy {
            grants: grants.map(|(name, grants)| (name, grants.as_ref().clone())).collect(),
            settings: app.settings.as_ref().clone(),
        };
        text.extend(json_line(&ExportLine::Rules(Box::new(rules)))?);
        Ok(text)
    }
}

fn changed(thread: &ThreadId) -> Failure {
    let text = format!("the runs of thread `{thread}` changed during the export; export it again");
    Failure::new(code::BUSY, text)
}

fn code_unavailable(record: &ThreadRecord) -> Failure {
    Failure::new(
        code::UNAVAILABLE,
        format!(
            "the code of thread `{}` is not available: version {} of graph `{}` in app `{}`; put \
             it back, or export the thread without its code",
            record.id,
            &record.version.to_hex()[..12],
            record.graph,
            record.app
        ),
    )
}

/// The part of an export that is not yet written.
struct ExportStream {
    store: Arc<dyn Store>,
    /// `None` if the export has no blobs.
    blobs: Option<Arc<dyn BlobStore>>,
    thread: ThreadId,
    from: Option<u64>,
    log_end: LogEnd,
    /// Referenced blobs that are not yet written.
    mentioned: BTreeSet<BlobRef>,
    /// True if the lines are those of a test.
    is_test: bool,
}

impl ExportStream {
    /// Returns the next lines: first the lines of the batches, then the lines of the blobs that the
    /// batches reference.
    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if !self.log_end.is_over {
            return self.batch_lines().await.map(Some);
        }
        while let Some(blob) = self.mentioned.pop_first() {
            if let Some(text) = self.blob_line(blob).await? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    async fn batch_lines(&mut self) -> Result<Bytes, Failure> {
        let page = self.store.batches(&self.thread, self.from, PAGE_BYTES).await?;
        let mut batches = page.batches;
        let log_end = &mut self.log_end;
        batches.retain(|batch| log_end.includes(batch));
        log_end.is_over |= page.next.is_none();
        self.from = page.next;
        let (is_test, has_blobs) = (self.is_test, self.blobs.is_some());
        let write = move || write_batches(batches, is_test, has_blobs);
        let (text, mentioned) = on_blocking_pool(write).await?;
        self.mentioned.extend(mentioned);
        Ok(text.into())
    }

    /// Returns the line of a blob; `None` if the blob does not exist, since any string can have the
    /// form of a reference.
    async fn blob_line(&self, blob: BlobRef) -> Result<Option<Bytes>, Failure> {
        let Some(blobs) = &self.blobs else { return Ok(None) };
        let read = async {
            let info = blobs.stat(blob).await?;
            let bytes = CompressedBytes(blobs.get(blob, 0, None).await?);
            Ok::<_, Failure>(BlobFile { blob, media_type: info.media_type, bytes })
        };
        match read.await {
            Ok(file) => {
                let text = on_blocking_pool(move || json_line(&ExportLine::Blob(file))).await?;
                Ok(Some(text.into()))
            }
            Err(failure) if failure.code == code::NOT_FOUND => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// The end of the exported log. Events of a run that starts during the export are not in the file.
struct LogEnd {
    last_seq: u64,
    seal: Option<Digest>,
    is_over: bool,
}

impl LogEnd {
    fn of(head: &ThreadHead) -> Self {
        let is_over = head.seal.is_some() && head.seal == head.pruned_seal;
        Self { last_seq: head.last_seq, seal: head.seal, is_over }
    }

    /// Returns true if a batch was stored when the header was created.
    fn includes(&mut self, batch: &StoredBatch) -> bool {
        let newest = batch.events.last().map_or(0, |event| event.seq);
        let is_later = newest > self.last_seq || (self.seal.is_none() && batch.seal.is_some());
        let is_in = !self.is_over && !is_later;
        self.is_over |= is_later || (self.seal.is_some() && batch.seal == self.seal);
        is_in
    }
}

/// Returns the lines of batches, and with `has_blobs` the blobs that the lines mention.
fn write_batches(
    batches: Vec<StoredBatch>,
    is_test: bool,
    has_blobs: bool,
) -> Result<(Vec<u8>, Vec<BlobRef>), Failure> {
    let mut text = Vec::new();
    for mut batch in batches {
        if is_test {
            make_test(&mut batch);
        }
        text.extend(json_line(&ExportLine::Batch(Box::new(batch)))?);
    }
    let mut mentioned = Vec::new();
    if has_blobs {
        BlobRef::find_in(&text, &mut mentioned);
    }
    Ok((text, mentioned))
}

/// Runs long work, such as the compression of large files, on a blocking thread.
async fn on_blocking_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let cut = |error| Failure::internal(format!("cannot export: {error}"));
    spawn_blocking(work).await.map_err(cut)?
}

fn json_line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec(value)
        .map_err(|error| Failure::internal(format!("cannot export: {error}")))?;
    text.push(b'\n');
    Ok(text)
}
