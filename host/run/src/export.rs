//! One thread as one file: what is stored of it, and if wanted the code that it runs.
//!
//! The file is lines of JSON. The first is the [`Header`]; every other is a batch as it was written,
//! a file of the code, what that may do, or a blob. A reader can check the seals and replay the
//! thread without the host that it comes from.

mod packed;
mod trust;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::seal::Sealer;

pub use self::packed::Packed;
use crate::app::App;
use crate::grant::Grants;
use crate::limit;
use crate::ports::blob::BlobRef;
use crate::ports::store::{RunRecord, StoredBatch, StoredValue, ThreadRecord, Verified};

/// The form of the file; a reader refuses a newer one.
pub const EXPORT_FORMAT: u32 = 2;

/// What an export holds beside the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// The code that the thread is pinned to, with what it may do and its settings.
    pub code: bool,
    /// The blobs that the thread mentions, as far as they are there.
    pub blobs: bool,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The form of the file.
    pub wattle_export: u32,
    /// The thread.
    pub thread: ThreadRecord,
    /// Its runs, oldest first.
    pub runs: Vec<RunRecord>,
    /// What its code consists of, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeNames>,
    /// What follows beside the log.
    #[serde(default)]
    pub parts: Parts,
    /// The time zone of the host, which nodes ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Its newest event.
    pub last_seq: u64,
    /// Sequence number before its oldest event that was still there.
    pub pruned_seq: u64,
    /// Seal of everything up to its newest event.
    pub seal: Option<Digest>,
    /// Seal that its oldest batch follows, if something was taken away from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_seal: Option<Digest>,
}

/// What a version of an app consists of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeNames {
    /// The app.
    pub app: AppName,
    /// Digest of each graph with all components: what threads are pinned to.
    pub graphs: BTreeMap<GraphName, Digest>,
    /// Digest of each component.
    pub plugins: BTreeMap<PluginName, Digest>,
}

/// A file of the code, relative to the folder of its app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFile {
    /// Its path with `/` between parts.
    pub path: String,
    /// Its bytes.
    pub bytes: Packed,
}

/// What the operator decided of an app, without which its code does something else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// What each plugin may do. Secrets are there by name only.
    pub grants: BTreeMap<PluginName, Grants>,
    /// Its settings, those of the operator included.
    pub settings: Value,
}

/// A blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobFile {
    /// Its reference, which is the digest of its bytes.
    pub blob: BlobRef,
    /// As given when it was stored.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Packed,
}

/// Where the files of loaded apps are.
#[async_trait]
pub trait CodeSource: Send + Sync {
    /// The files of an app in the version that is handed over.
    ///
    /// # Errors
    ///
    /// `unavailable` if they were replaced since it was loaded.
    async fn files(&self, app: &Arc<App>) -> Result<Vec<CodeFile>, Failure>;
}

/// Any line after the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What was written at once.
    Batch(Box<StoredBatch>),
    /// A file of the code.
    Code(CodeFile),
    /// What the code may do.
    Rules(Box<Rules>),
    /// A blob that the thread mentions.
    Blob(BlobFile),
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The first line.
    pub header: Header,
    /// What was written, oldest first.
    pub batches: Vec<StoredBatch>,
    /// The code; empty if it is not in the file.
    pub code: Vec<CodeFile>,
    /// What the code may do.
    pub rules: Option<Rules>,
    /// Blobs.
    pub blobs: Vec<BlobFile>,
}

/// Why a file is no export, or not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A line cannot be read.
    #[error("line {line} is none of an export: {message}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// Why.
        message: String,
    },
    /// A newer version of Wattle wrote it.
    #[error("the export has form {found}, newer than {EXPORT_FORMAT}; use a newer wattle")]
    NewerFormat {
        /// Its form.
        found: u32,
    },
    /// It is larger than anything that is read.
    #[error("the export holds more than {allowed} bytes, which is more than is read")]
    TooLarge {
        /// The limit.
        allowed: u64,
    },
    /// A blob is not what its reference says.
    #[error("the export was changed: the bytes of `{blob}` are others")]
    Blob {
        /// Its reference.
        blob: BlobRef,
    },
    /// What it holds does not fit its seals: it was changed, or is not whole.
    #[error("the export was changed, or is not whole, at event {seq}: {message}")]
    Broken {
        /// First event that the broken seal covers.
        seq: u64,
        /// What does not fit.
        message: String,
    },
}

impl Export {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ExportError::Line`], [`ExportError::NewerFormat`], [`ExportError::TooLarge`] and
    /// [`ExportError::Blob`]; the seals are checked by [`Export::verify`], and the digests of the
    /// code when the code is loaded.
    pub fn read(text: &str) -> Result<Self, ExportError> {
        let allowed = limit::EXPORT_BYTES;
        let too_large = ExportError::TooLarge { allowed };
        if text.len() as u64 > allowed {
            return Err(too_large);
        }
        let wrong = |line: usize| {
            move |error: serde_json::Error| ExportError::Line { line, message: error.to_string() }
        };
        let mut lines = text.lines().enumerate().map(|(index, text)| (index + 1, text));
        let (number, first) = lines.next().unwrap_or((1, ""));
        /// Enough of the first line to tell whether the rest can be read.
        #[derive(Deserialize)]
        struct Form {
            wattle_export: u32,
        }
        let form: Form = serde_json::from_str(first).map_err(wrong(number))?;
        if form.wattle_export > EXPORT_FORMAT {
            return Err(ExportError::NewerFormat { found: form.wattle_export });
        }
        let header: Header = serde_json::from_str(first).map_err(wrong(number))?;
        let mut export =
            Self { header, batches: Vec::new(), code: Vec::new(), rules: None, blobs: Vec::new() };
        let mut unpacked = 0;
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            unpacked += match serde_json::from_str(line).map_err(wrong(number))? {
                Line::Batch(batch) => {
                    if let Some(message) = trust::too_deep(&batch) {
                        return Err(ExportError::Line { line: number, message });
                    }
                    export.batches.push(*batch);
                    0
                }
                Line::Rules(rules) => {
                    export.rules = Some(*rules);
                    0
                }
                Line::Code(file) => {
                    export.code.push(file);
                    export.code.last().map_or(0, |file| file.bytes.len())
                }
                Line::Blob(file) if Digest::of(&file.bytes) != file.blob.0 => {
                    return Err(ExportError::Blob { blob: file.blob });
                }
                Line::Blob(file) => {
                    export.blobs.push(file);
                    export.blobs.last().map_or(0, |file| file.bytes.len())
                }
            };
            if unpacked as u64 > allowed {
                return Err(too_large);
            }
        }
        Ok(export)
    }

    /// Checks the seals: what is there is what was written, and nothing is missing.
    ///
    /// # Errors
    ///
    /// [`ExportError::Broken`] where the first does not fit.
    pub fn verify(&self) -> Result<Verified, ExportError> {
        let mut last_seq = self.header.pruned_seq;
        let mut sealed_after = last_seq;
        let mut previous = self.header.pruned_seal;
        for batch in &self.batches {
            let seq = last_seq.saturating_add(1);
            last_seq = batch.events.last().map_or(last_seq, |event| event.seq);
            match batch.seal {
                None if previous.is_none() => sealed_after = last_seq,
                seal if seal == Some(seal_of(previous, batch)) => {}
                _ => {
                    let message = "the seal does not fit".to_owned();
                    return Err(ExportError::Broken { seq, message });
                }
            }
            previous = batch.seal;
        }
        // The newest events may have been taken away, so their numbers tell nothing.
        if previous != self.header.seal {
            let message = "its end is missing".to_owned();
            return Err(ExportError::Broken { seq: last_seq.saturating_add(1), message });
        }
        Ok(Verified { sealed_after, last_seq: self.header.last_seq, seal: previous })
    }
}

/// The seal of a batch that follows another.
///
/// Numbers and texts have one form in the JSON of the host, so what was read from JSON has the
/// bytes that were sealed.
pub fn seal_of(previous: Option<Digest>, batch: &StoredBatch) -> Digest {
    // What was read from JSON can be written as JSON.
    fn json(value: &impl Serialize) -> Vec<u8> {
        serde_json::to_vec(value).unwrap_or_default()
    }
    let mut sealer = Sealer::new(previous, batch.base);
    match batch.events.as_slice() {
        [] => sealer.part(&[]),
        events => sealer.part(&json(&events)),
    }
    if let Some(meta) = &batch.checkpoint {
        sealer.part(&json(meta));
        for (channel, value) in &batch.values {
            match value {
                StoredValue::Whole(value) => sealer.value(channel.as_str(), None, &json(value)),
                StoredValue::Tail { base, keep, items } => {
                    let tail = wattle_graph::checkpoint::Tail { base: *base, keep: *keep };
                    sealer.value(channel.as_str(), Some(tail), &json(items));
                }
            }
        }
    }
    sealer.finish()
}
