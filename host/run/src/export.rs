//! Exports: one thread as one file, with the code that it is pinned to if requested.
//!
//! The file has one JSON document per line. The first line is the [`ExportHeader`]. Every other
//! line is a batch as it was written, a file of the code, the operator's rules for the code, or a
//! blob. A reader can verify the seals and replay the thread without the host that wrote the file.

mod compressed;
pub(crate) mod test_case;
mod untrusted;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::seal::Sealer;

pub use self::compressed::CompressedBytes;
use crate::app::App;
use crate::grant::Grants;
use crate::limit;
use crate::ports::blob::BlobRef;
use crate::ports::store::{RunRecord, SealReport, StoredBatch, StoredValue, ThreadRecord};

/// Version of the file format. A reader rejects a newer version.
pub const EXPORT_FORMAT: u32 = 2;

/// Optional parts of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExportParts {
    /// The code that the thread is pinned to, with its grants and settings.
    pub code: bool,
    /// The blobs that the thread mentions and that still exist.
    pub blobs: bool,
}

/// The first line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportHeader {
    /// Version of the file format.
    pub wattle_export: u32,
    /// The thread.
    pub thread: ThreadRecord,
    /// Runs of the thread, oldest first.
    pub runs: Vec<RunRecord>,
    /// Digests of the code that the thread is pinned to, if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeDigests>,
    /// Parts that follow the log.
    #[serde(default)]
    pub parts: ExportParts,
    /// Time zone of the host, which nodes can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Sequence number of the newest event.
    pub last_seq: u64,
    /// Sequence number before the oldest event that was not pruned.
    pub pruned_seq: u64,
    /// Seal of the newest batch.
    pub seal: Option<Digest>,
    /// Seal before the oldest batch, if earlier batches were pruned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruned_seal: Option<Digest>,
}

/// Digests of one version of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeDigests {
    /// The app.
    pub app: AppName,
    /// Digest of each graph with all components. Threads are pinned to this digest.
    pub graphs: BTreeMap<GraphName, Digest>,
    /// Digest of each component.
    pub plugins: BTreeMap<PluginName, Digest>,
}

/// A file of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFile {
    /// Path relative to the folder of the app, with `/` as separator.
    pub path: String,
    /// Content of the file.
    pub bytes: CompressedBytes,
}

/// The operator's grants and settings of an app, on which its code depends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorPolicy {
    /// Grants of each plugin. The grants contain only the names of secrets.
    pub grants: BTreeMap<PluginName, Grants>,
    /// Settings of the app, including those of the operator.
    pub settings: Value,
}

/// A blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobFile {
    /// Reference to the blob: the digest of its bytes.
    pub blob: BlobRef,
    /// Media type that was given when the blob was stored.
    pub media_type: String,
    /// Content of the blob.
    pub bytes: CompressedBytes,
}

/// Access to the files of loaded apps and to archived versions.
#[async_trait]
pub trait CodeSource: Send + Sync {
    /// Returns the files of an app in the version that is given.
    ///
    /// # Errors
    ///
    /// `unavailable` if the files were replaced since the app was loaded.
    async fn files(&self, app: &Arc<App>) -> Result<Vec<CodeFile>, Failure>;

    /// Returns true if [`CodeSource::load_version`] can load the versions of an app again.
    fn is_archived(&self, app: &App) -> bool;

    /// Returns the archived versions of a graph. A version that an older host archived is left
    /// out: its archive does not name the graphs.
    fn archived_versions(&self, app: &AppName, graph: &GraphName) -> BTreeSet<Digest>;

    /// Adds an archived version of an app to the catalog. Returns false if the version is not
    /// archived.
    ///
    /// # Errors
    ///
    /// `unavailable` if the version cannot be loaded; retryable if the load takes longer than a
    /// request waits.
    async fn load_version(&self, app: &AppName, version: Digest) -> Result<bool, Failure>;
}

/// Any line of an export after the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportLine {
    /// Events and a checkpoint that were written together.
    Batch(Box<StoredBatch>),
    /// A file of the code.
    Code(CodeFile),
    /// Grants and settings of the code.
    Rules(Box<OperatorPolicy>),
    /// A blob that the thread mentions.
    Blob(BlobFile),
}

/// An export that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// The first line of the file.
    pub header: ExportHeader,
    /// Batches of the log, oldest first.
    pub batches: Vec<StoredBatch>,
    /// Files of the code; empty if the file does not contain the code.
    pub code: Vec<CodeFile>,
    /// Grants and settings of the code.
    pub policy: Option<OperatorPolicy>,
    /// Blobs.
    pub blobs: Vec<BlobFile>,
}

/// The error for a file that is not a valid export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A line cannot be parsed.
    #[error("line {line} is not a valid export record: {message}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A newer version of Wattle wrote the file.
    #[error("the export has format {found}, newer than {EXPORT_FORMAT}; use a newer wattle")]
    NewerFormat {
        /// Format of the file.
        found: u32,
    },
    /// The export exceeds the limit of bytes.
    #[error("the export exceeds the limit of {allowed} bytes")]
    TooLarge {
        /// The limit, in bytes.
        allowed: u64,
    },
    /// The bytes of a blob do not match its reference.
    #[error("the export is corrupt: blob `{blob}` does not match its digest")]
    Blob {
        /// Reference to the blob.
        blob: BlobRef,
    },
    /// The seals do not match: the file was changed or is incomplete.
    #[error("the export was changed or is incomplete at event {seq}: {message}")]
    Broken {
        /// First event that the broken seal covers.
        seq: u64,
        /// What does not match.
        message: String,
    },
}

impl Export {
    /// Parses an export.
    ///
    /// # Errors
    ///
    /// [`ExportError::Line`], [`ExportError::NewerFormat`], [`ExportError::TooLarge`] and [`ExportError::Blob`].
    /// [`Export::verify`] checks the seals. The digests of the code are checked when the code is loaded.
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
        let (line_number, first) = lines.next().unwrap_or((1, ""));
        /// The part of the first line that every version of the file format has.
        #[derive(Deserialize)]
        struct FormatRepr {
            wattle_export: u32,
        }
        let form: FormatRepr = serde_json::from_str(first).map_err(wrong(line_number))?;
        if form.wattle_export > EXPORT_FORMAT {
            return Err(ExportError::NewerFormat { found: form.wattle_export });
        }
        let header: ExportHeader = serde_json::from_str(first).map_err(wrong(line_number))?;
        let mut export =
            Self { header, batches: Vec::new(), code: Vec::new(), policy: None, blobs: Vec::new() };
        let mut unpacked = 0;
        for (line_number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            unpacked += match serde_json::from_str(line).map_err(wrong(line_number))? {
                ExportLine::Batch(batch) => {
                    if let Some(message) = untrusted::nesting_violation(&batch) {
                        return Err(ExportError::Line { line: line_number, message });
                    }
                    export.batches.push(*batch);
                    0
                }
                ExportLine::Rules(rules) => {
                    export.policy = Some(*rules);
                    0
                }
                ExportLine::Code(file) => {
                    export.code.push(file);
                    export.code.last().map_or(0, |file| file.bytes.len())
                }
                ExportLine::Blob(file) if Digest::of(&file.bytes) != file.blob.0 => {
                    return Err(ExportError::Blob { blob: file.blob });
                }
                ExportLine::Blob(file) => {
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

    /// Verifies the seals: no batch was changed, and none is missing.
    ///
    /// # Errors
    ///
    /// [`ExportError::Broken`] for the first batch that does not match.
    pub fn verify(&self) -> Result<SealReport, ExportError> {
        let mut last_seq = self.header.pruned_seq;
        let mut sealed_after = last_seq;
        let mut seal = self.header.pruned_seal;
        for batch in &self.batches {
            let seq = last_seq.saturating_add(1);
            last_seq = batch.events.last().map_or(last_seq, |event| event.seq);
            match batch.seal {
                None if seal.is_none() => sealed_after = last_seq,
                found if found == Some(seal_of(seal, batch)) => {}
                _ => {
                    let message = "the seal does not match".to_owned();
                    return Err(ExportError::Broken { seq, message });
                }
            }
            seal = batch.seal;
        }
        // The newest events may have been deleted, so the last sequence number does not prove that
        // the export is complete.
        if seal != self.header.seal {
            let message = "the newest batches are missing".to_owned();
            return Err(ExportError::Broken { seq: last_seq.saturating_add(1), message });
        }
        Ok(SealReport { sealed_after, last_seq: self.header.last_seq, seal })
    }
}

/// Returns the seal of a batch, given the seal before it.
///
/// The host serializes equal JSON values to equal bytes, so values that were parsed from JSON serialize to the bytes
/// that were sealed.
pub fn seal_of(previous: Option<Digest>, batch: &StoredBatch) -> Digest {
    // A value that was parsed from JSON can be serialized.
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
                StoredValue::ListDelta { base, keep, items } => {
                    let tail =
                        wattle_graph::checkpoint::ListDelta { base: *base, prefix_len: *keep };
                    sealer.value(channel.as_str(), Some(tail), &json(items));
                }
            }
        }
    }
    sealer.finish()
}
