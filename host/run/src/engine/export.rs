//! A thread as one file, written as it is read.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use serde::Serialize;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Digest, ThreadId};

use super::{Engine, no_thread};
use crate::export::{CodeNames, EXPORT_FORMAT, Header, Line};
use crate::ports::store::{StoredBatch, ThreadHead, ThreadStatus};
use crate::view::store_failure;

/// Bytes of batches that are in memory at once.
const PAGE_BYTES: usize = 4 << 20;

impl Engine {
    /// The lines of an export of a thread, without its code.
    ///
    /// # Errors
    ///
    /// `not-found`; `busy` while a run is at work, since what it writes would be missing. An item
    /// of the stream is an error if the store fails on the way.
    pub async fn export(
        &self,
        thread: &ThreadId,
    ) -> Result<BoxStream<'static, Result<Bytes, Failure>>, Failure> {
        let head = self.live_thread(thread).await?.ok_or_else(|| no_thread(thread))?;
        if head.record.status == ThreadStatus::Running {
            let text = format!("a run is at work on thread `{thread}`; export it when it is over");
            return Err(Failure::new(code::BUSY, text));
        }
        let store = self.0.ports.store.clone();
        let header = self.header(&head).await?;
        let mut ending = Ending { last_seq: head.last_seq, seal: head.seal, is_over: false };
        ending.is_over = head.seal.is_some() && head.seal == head.pruned_seal;
        let thread = thread.clone();
        let batches = futures::stream::try_unfold((ending, None), move |(mut ending, from)| {
            let (store, thread) = (store.clone(), thread.clone());
            async move {
                if ending.is_over {
                    return Ok(None);
                }
                let page = store.batches(&thread, from, PAGE_BYTES).await;
                let page = page.map_err(store_failure)?;
                let mut text = Vec::new();
                for batch in page.batches {
                    if ending.takes(&batch) {
                        text.extend(line(&Line::Batch(Box::new(batch)))?);
                    }
                }
                ending.is_over |= page.next.is_none();
                Ok(Some((Bytes::from(text), (ending, page.next))))
            }
        });
        let first = futures::stream::iter([line(&header).map(Bytes::from)]);
        Ok(first.chain(batches).boxed())
    }

    async fn header(&self, head: &ThreadHead) -> Result<Header, Failure> {
        let record = &head.record;
        let runs = self.0.ports.store.runs(&record.id).await.map_err(store_failure)?;
        let version = self.0.catalog.version(&record.app, &record.graph, record.version);
        let code = version.map(|(app, _)| CodeNames {
            app: app.name.clone(),
            graphs: app.graphs.iter().map(|(name, pack)| (name.clone(), pack.version)).collect(),
            plugins: app
                .plugins
                .iter()
                .map(|(name, plugin)| (name.clone(), plugin.info().digest))
                .collect(),
        });
        Ok(Header {
            wattle_export: EXPORT_FORMAT,
            thread: record.clone(),
            runs,
            code,
            last_seq: head.last_seq,
            pruned_seq: head.pruned_seq,
            seal: head.seal,
            pruned_seal: head.pruned_seal,
        })
    }
}

/// Where the file ends: a run that begins meanwhile is not in it.
struct Ending {
    last_seq: u64,
    seal: Option<Digest>,
    is_over: bool,
}

impl Ending {
    /// Whether a batch was there when the header was made.
    fn takes(&mut self, batch: &StoredBatch) -> bool {
        let newest = batch.events.last().map_or(0, |event| event.seq);
        let is_later = newest > self.last_seq || (self.seal.is_none() && batch.seal.is_some());
        let is_in = !self.is_over && !is_later;
        self.is_over |= is_later || (self.seal.is_some() && batch.seal == self.seal);
        is_in
    }
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec(value)
        .map_err(|error| Failure::internal(format!("cannot export: {error}")))?;
    text.push(b'\n');
    Ok(text)
}
