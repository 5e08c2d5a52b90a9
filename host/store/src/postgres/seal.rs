//! Seals of batches, and their verification.

use serde::Deserialize;
use sqlx::Row as _;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::id::{CheckpointId, Digest, ThreadId};
use wattle_graph::seal::Sealer;
use wattle_run::ports::store::{SealReport, StoreError};

use crate::postgres::batch_scan::{self, ScannedBatch};
use crate::postgres::database::Database;
use crate::postgres::retry::sqlx_error;
use crate::postgres::stage::Body;
use crate::postgres::thread_row::{digest, unsigned};

const OPERATION: &str = "check seals";

const SELECT_SEALS: &str = "
    SELECT number, last_seq, seal, pruned_seal FROM threads WHERE id = $1 AND record IS NOT NULL";

impl Body {
    /// Returns the seal of a batch that follows `previous`.
    pub(super) fn seal(&self, previous: Option<Digest>, base: Option<CheckpointId>) -> Digest {
        let mut sealer = Sealer::new(previous, base);
        sealer.part(self.events.as_deref().unwrap_or_default());
        if let Some(meta) = &self.meta {
            sealer.part(meta);
            for value in &self.values {
                sealer.value(value.channel.as_str(), value.delta, &value.json);
            }
        }
        sealer.finish()
    }
}

/// See [`Store::verify`](wattle_run::ports::Store::verify).
pub(super) async fn verify(
    database: &Database,
    thread: &ThreadId,
) -> Result<Option<SealReport>, StoreError> {
    let mut snapshot = database.snapshot(OPERATION).await?;
    let head = sqlx::query(SELECT_SEALS).bind(thread.as_str().as_bytes());
    let head = head.fetch_optional(&mut *snapshot).await.map_err(sqlx_error(OPERATION))?;
    let Some(head) = head else { return Ok(None) };
    let read = || {
        let seals = (digest(&head, "seal")?, digest(&head, "pruned_seal")?);
        Ok((head.try_get::<i64, _>("number")?, unsigned(&head, "last_seq")?, seals))
    };
    let (number, last_seq, (seal, pruned)) = read().map_err(sqlx_error(OPERATION))?;
    let mut previous = pruned;
    let mut next = (0, 0);
    let mut sealed_after = None;
    loop {
        let page = match batch_scan::page(&mut snapshot, number, next.0).await {
            Ok(page) => page,
            Err(StoreError::Corrupt { what, message }) => {
                return Err(broken_seal(
                    thread,
                    next.1,
                    format!("{what} cannot be read: {message}"),
                ));
            }
            Err(error) => return Err(error),
        };
        let Some(last) = page.last() else { break };
        next = (last.position + 1, last.last_seq);
        for batch in &page {
            sealed_after.get_or_insert(batch.after_seq);
            check_batch(batch, previous)
                .map_err(|message| broken_seal(thread, batch.after_seq, message))?;
            previous = batch.seal;
        }
    }
    if previous != seal || last_seq < next.1 {
        let message = "its newest batches are missing".to_owned();
        return Err(broken_seal(thread, next.1, message));
    }
    let sealed_after = sealed_after.unwrap_or(last_seq);
    Ok(Some(SealReport { sealed_after, last_seq, seal }))
}

fn broken_seal(thread: &ThreadId, after: u64, message: String) -> StoreError {
    StoreError::Broken { thread: thread.clone(), seq: after + 1, message }
}

/// Checks the seal of a batch, and the columns that the seal does not cover.
fn check_batch(batch: &ScannedBatch, previous: Option<Digest>) -> Result<(), String> {
    if batch.seal != Some(batch.body.seal(previous, batch.base)) {
        return Err("its seal does not match".to_owned());
    }
    let events: Vec<Seq> = parse(batch.body.events.as_deref())?.unwrap_or_default();
    if events.last().is_some_and(|event| event.seq != batch.last_seq) {
        return Err("its events do not match its sequence numbers".to_owned());
    }
    let meta: Option<CheckpointMeta> = parse(batch.body.meta.as_deref())?;
    let named = meta.as_ref().map(|meta| (meta.id, meta.namespace.as_str().as_bytes()));
    if named != batch.checkpoint.as_ref().map(|(id, namespace)| (*id, namespace.as_slice())) {
        return Err("its checkpoint has another id or namespace".to_owned());
    }
    let version = |channel| meta.as_ref().and_then(|meta| meta.versions.get(channel));
    match batch.body.values.iter().find(|value| version(&value.channel) != Some(&value.version)) {
        Some(value) => Err(format!(
            "the value of channel `{}` is stored for another checkpoint",
            value.channel
        )),
        None => Ok(()),
    }
}

/// The sequence number of an event.
#[derive(Deserialize)]
struct Seq {
    seq: u64,
}

fn parse<T: for<'de> Deserialize<'de>>(json: Option<&[u8]>) -> Result<Option<T>, String> {
    json.map(serde_json::from_slice).transpose().map_err(|error| error.to_string())
}
