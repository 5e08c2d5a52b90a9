//! JSON bodies of verifications, backups and compactions of the store.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::store::{CompactionReport, Damage, DamageReport};

/// The result of a verification of all stored data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamageReportDocument {
    /// Number of threads that were read completely.
    pub threads: u64,
    /// Damaged items.
    pub damaged: Vec<DamageDocument>,
}

/// A damaged item of the stored data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DamageDocument {
    /// The item: a thread, a run, a table, a blob or a file.
    pub subject: String,
    /// What is wrong with the item.
    pub reason: String,
}

/// A completed backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupDocument {
    /// Folder of the backup on the machine of the server.
    pub folder: String,
    /// Damaged blobs, which the backup lacks.
    pub damaged: Vec<DamageDocument>,
}

/// The size of the store before and after a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompactionDocument {
    /// Bytes on disk before.
    pub before_bytes: u64,
    /// Bytes on disk afterwards.
    pub after_bytes: u64,
}

impl From<DamageReport> for DamageReportDocument {
    fn from(report: DamageReport) -> Self {
        Self {
            threads: report.threads,
            damaged: report.damaged.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Damage> for DamageDocument {
    fn from(damage: Damage) -> Self {
        Self { subject: damage.subject, reason: damage.reason }
    }
}

impl From<CompactionReport> for CompactionDocument {
    fn from(report: CompactionReport) -> Self {
        Self { before_bytes: report.before_bytes, after_bytes: report.after_bytes }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The command line deserializes the documents as [`DamageReport`] and [`CompactionReport`].
    #[test]
    fn damage_and_compaction_documents_serialize_like_the_reports_of_the_store() {
        let damaged = json!([{ "subject": "thread t", "reason": "a batch is missing" }]);
        let report = json!({ "threads": 3, "damaged": damaged });
        let read: DamageReport = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(json!(DamageReportDocument::from(read)), report);
        let report = json!({ "before_bytes": 2_048, "after_bytes": 1_024 });
        let read: CompactionReport = serde_json::from_value(report.clone()).unwrap();
        assert_eq!(json!(CompactionDocument::from(read)), report);
    }
}
