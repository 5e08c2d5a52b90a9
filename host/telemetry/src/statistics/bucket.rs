//! The counts of one interval, as a document of the long-term memory.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::statistics::counts::{ModelCounts, ModelKey, RunCounts, RunKey};
use crate::statistics::limit::{BUCKET_BYTES, BUCKET_ROWS};
use crate::statistics::rows::Rows;

/// Maximum length of a mark in bytes: a UUID and a number.
const MARK_BYTES: usize = 64;

/// The counts of one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bucket {
    pub(super) runs: Rows<RunKey, RunCounts>,
    pub(super) models: Rows<ModelKey, ModelCounts>,
}

/// The document of a bucket.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BucketDocument {
    /// Mark of the newest write. Every write has a unique mark.
    pub(super) mark: String,
    /// Rows of runs: app, tenant and counts.
    runs: Vec<(String, String, RunCounts)>,
    /// Rows of model calls: app, tenant, model and counts.
    models: Vec<(String, String, String, ModelCounts)>,
}

impl Bucket {
    /// Adds the counts of another bucket.
    pub(super) fn merge(&mut self, other: &Self) {
        self.runs.merge(&other.runs);
        self.models.merge(&other.models);
    }

    /// Merges rows until at most `most` rows of each kind are left.
    pub(super) fn fold_to(&mut self, most: usize) {
        self.runs.fold_to(most);
        self.models.fold_to(most);
    }

    /// Merges rows until the bucket has at most [`BUCKET_ROWS`] rows of each kind, and its document
    /// has at most [`BUCKET_BYTES`].
    pub(super) fn bound(&mut self) {
        let mut most = self.most_rows().min(BUCKET_ROWS);
        self.fold_to(most);
        while most > 0 && self.document_bytes() > BUCKET_BYTES {
            most = most * 7 / 8;
            self.fold_to(most);
        }
    }

    /// Returns the number of rows of runs or of models, whichever is larger.
    pub(super) fn most_rows(&self) -> usize {
        self.runs.len().max(self.models.len())
    }

    /// Converts the bucket to its document.
    pub(super) fn to_document(&self, mark: &str) -> BucketDocument {
        let runs = self.runs.iter();
        let models = self.models.iter();
        BucketDocument {
            mark: mark.to_owned(),
            runs: runs
                .map(|(key, counts)| (key.app.clone(), key.tenant.clone(), counts.clone()))
                .collect(),
            models: models
                .map(|(ModelKey { run, model }, counts)| {
                    (run.app.clone(), run.tenant.clone(), model.clone(), *counts)
                })
                .collect(),
        }
    }

    fn document_bytes(&self) -> usize {
        let json = serde_json::to_vec(&self.to_document(""));
        json.map_or(0, |json| json.len() + MARK_BYTES)
    }
}

impl BucketDocument {
    /// Parses a document of the memory.
    pub(super) fn from_value(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value)
    }

    /// Converts the document to a value of the memory.
    pub(super) fn to_value(&self) -> Value {
        // Serialization cannot fail, because all keys are strings or numbers.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<BucketDocument> for Bucket {
    fn from(document: BucketDocument) -> Self {
        let mut bucket = Self::default();
        for (app, tenant, counts) in document.runs {
            bucket.runs.add(RunKey { app, tenant }, &counts);
        }
        for (app, tenant, model, counts) in document.models {
            bucket.models.add(ModelKey { run: RunKey { app, tenant }, model }, &counts);
        }
        bucket
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::event::RunStatus;

    use super::*;
    use crate::statistics::counts::REST;
    use crate::statistics::rows::Counts as _;

    fn bucket(app: &str, tenant: &str, models: &[&str]) -> Bucket {
        let run = RunKey { app: app.into(), tenant: tenant.into() };
        let mut bucket = Bucket::default();
        let mut counts = RunCounts::of_run(RunStatus::Completed, None);
        counts.count_duration(700);
        bucket.runs.add(run.clone(), &counts);
        for model in models {
            let key = ModelKey { run: run.clone(), model: (*model).into() };
            let counts = ModelCounts { calls: 1, failed: 0, input_tokens: 12, output_tokens: 3 };
            bucket.models.add(key, &counts);
        }
        bucket
    }

    #[test]
    fn document_contains_all_rows_of_the_bucket() {
        let mut all = bucket("asset", "acme", &["gpt"]);
        all.merge(&bucket("asset", "", &["gpt", REST]));
        all.merge(&bucket("asset", "acme", &["gpt"]));
        let value = all.to_document("h-1").to_value();
        let row = json!(["asset", "acme", { "completed": 2, "durations": { "10": 2 } }]);
        assert_eq!((&value["runs"][1], &value["mark"]), (&row, &json!("h-1")));
        let read = BucketDocument::from_value(&value).unwrap();
        assert_eq!(Bucket::from(read), all);
        assert_eq!(BucketDocument::from_value(&json!({})).unwrap(), BucketDocument::default());
        assert!(BucketDocument::from_value(&json!({ "runs": 1 })).is_err());
    }

    #[test]
    fn bucket_is_bounded_in_rows_and_bytes() {
        let mut all = Bucket::default();
        for number in 0..3_000_u32 {
            let app = format!("{:a<64}", number % 40);
            let tenant = format!("{number:t<64}");
            all.merge(&bucket(&app, &tenant, &["a-model-with-a-long-name", REST]));
            if all.most_rows() > 2 * BUCKET_ROWS {
                all.bound();
            }
        }
        // The row with the largest counts is not merged into another row.
        for _ in 0..1_000 {
            all.merge(&bucket("large", "acme", &["gpt"]));
        }
        all.bound();
        assert!(all.document_bytes() <= BUCKET_BYTES && all.most_rows() <= BUCKET_ROWS);
        assert_eq!(all.runs.iter().map(|(_, counts)| counts.weight()).sum::<u64>(), 4_000);
        let calls = all.models.iter().map(|(_, counts)| counts.calls);
        assert_eq!(calls.sum::<u64>(), 7_000);
        let large = all.runs.iter().find(|(key, _)| key.app == "large" && key.tenant == "acme");
        assert_eq!(large.map(|(_, counts)| counts.completed), Some(1_000));
    }
}
