//! The counts of runs and of model calls, and the keys of their rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::{Failure, code};

use crate::metrics::run_metrics::{OTHER, code_of};
use crate::statistics::limit::{LIMIT_NAME_BYTES, LIMIT_NAMES};
use crate::statistics::rows::{Counts, Key};

/// Name of the app, tenant or model in a row that merges several of them. No app, tenant or model
/// can have this name.
pub(super) const REST: &str = "*";

/// App and tenant of runs. The name of the tenant is empty for runs without a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey {
    pub(super) app: String,
    pub(super) tenant: String,
}

impl Key for RunKey {
    fn parent(&self) -> Option<Self> {
        let Self { app, tenant } = self;
        match (app.as_str(), tenant.as_str()) {
            (REST, REST) => None,
            (_, REST) => Some(Self { app: REST.to_owned(), tenant: REST.to_owned() }),
            _ => Some(Self { app: app.clone(), tenant: REST.to_owned() }),
        }
    }
}

/// App, tenant and model of model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelKey {
    pub(super) run: RunKey,
    pub(super) model: String,
}

impl Key for ModelKey {
    fn parent(&self) -> Option<Self> {
        let Self { run, model } = self;
        match run.parent() {
            Some(run) => Some(Self { run, model: model.clone() }),
            None if model == REST => None,
            None => Some(Self { run: run.clone(), model: REST.to_owned() }),
        }
    }
}

/// Counts of ended runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RunCounts {
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) completed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) interrupted: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) cancelled: u64,
    /// Number of failed runs by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) failures: BTreeMap<String, u64>,
    /// How often runs reached a limit, by the name of the limit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) limits: BTreeMap<String, u64>,
    /// Number of runs by duration. The key is the binary logarithm of the duration in milliseconds,
    /// rounded up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) durations: BTreeMap<u8, u64>,
}

impl RunCounts {
    /// Counts a run.
    pub(super) fn of_run(status: RunStatus, failure: Option<&Failure>) -> Self {
        let mut counts = Self::default();
        match status {
            RunStatus::Completed => counts.completed = 1,
            RunStatus::Interrupted => counts.interrupted = 1,
            RunStatus::Failed => {
                counts.failed = 1;
                let code = failure.map_or(OTHER, code_of);
                counts.failures.insert(code.to_owned(), 1);
            }
            RunStatus::Cancelled => counts.cancelled = 1,
            // A run with such a status has not ended.
            RunStatus::Pending | RunStatus::Running => {}
        }
        counts
    }

    /// Counts the limit that caused a failure. Does nothing for other failures.
    pub(super) fn count_limit(&mut self, failure: &Failure) {
        if failure.code != code::LIMIT {
            return;
        }
        let named = failure.details.as_ref().and_then(|details| details.get("limit")?.as_str());
        let named = named.filter(|name| (1..=LIMIT_NAME_BYTES).contains(&name.len()));
        self.add_limit(named.unwrap_or(OTHER), 1);
    }

    /// Counts a run with this duration.
    pub(super) fn count_duration(&mut self, ms: u64) {
        let ms = ms.clamp(1, 1 << 40);
        let exponent = ms.next_power_of_two().trailing_zeros() as u8;
        *self.durations.entry(exponent).or_default() += 1;
    }

    fn add_limit(&mut self, name: &str, count: u64) {
        // The last place is for `other`.
        let has_room = self.limits.contains_key(name) || self.limits.len() < LIMIT_NAMES - 1;
        let name = if has_room { name } else { OTHER };
        *self.limits.entry(name.to_owned()).or_default() += count;
    }
}

impl Counts for RunCounts {
    fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.interrupted += other.interrupted;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        for (code, count) in &other.failures {
            *self.failures.entry(code.clone()).or_default() += count;
        }
        for (name, count) in &other.limits {
            self.add_limit(name, *count);
        }
        for (exponent, count) in &other.durations {
            *self.durations.entry(*exponent).or_default() += count;
        }
    }

    fn weight(&self) -> u64 {
        self.completed + self.interrupted + self.failed + self.cancelled
    }
}

/// Counts of executed model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ModelCounts {
    pub(super) calls: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) input_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) output_tokens: u64,
}

impl Counts for ModelCounts {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
    }

    fn weight(&self) -> u64 {
        self.calls
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn limit(name: &str) -> Failure {
        Failure::new(code::LIMIT, "reached").with_details(json!({ "limit": name }))
    }

    #[test]
    fn number_of_limit_names_is_bounded() {
        let mut counts = RunCounts::default();
        counts.count_limit(&Failure::new(code::DENIED, "no limit"));
        counts.count_limit(&Failure::new(code::LIMIT, "no details"));
        counts.count_limit(&limit(&"x".repeat(1_000)));
        assert_eq!(counts.limits, BTreeMap::from([(OTHER.to_owned(), 2)]));
        for number in 0..100 {
            counts.count_limit(&limit(&format!("own-{number:03}")));
        }
        let mut twice = counts.clone();
        for number in 200..300 {
            counts.count_limit(&limit(&format!("own-{number}")));
        }
        twice.add(&counts);
        assert_eq!(twice.limits.len(), LIMIT_NAMES - 1, "`other` takes one of the places");
        assert_eq!(twice.limits["own-000"], 2);
        assert_eq!(twice.limits.values().sum::<u64>(), 102 + 202);
    }

    #[test]
    fn durations_are_counted_by_powers_of_two() {
        let mut counts = RunCounts::default();
        for ms in [0, 1, 2, 3, 4, 5, 1_024, 1_025, u64::MAX] {
            counts.count_duration(ms);
        }
        let expected = [(0, 2), (1, 1), (2, 2), (3, 1), (10, 1), (11, 1), (40, 1)];
        assert_eq!(counts.durations, BTreeMap::from(expected));
    }

    #[test]
    fn codes_of_guests_are_counted_as_other() {
        let counts = RunCounts::of_run(RunStatus::Failed, Some(&Failure::new("own", "it failed")));
        assert_eq!(counts.failures, BTreeMap::from([(OTHER.to_owned(), 1)]));
        assert_eq!((counts.failed, counts.weight()), (1, 1));
    }

    #[test]
    fn parent_keys_lose_the_tenant_first_and_the_model_last() {
        let run = RunKey { app: "asset".into(), tenant: "acme".into() };
        let mut key = ModelKey { run, model: "gpt".into() };
        let mut path = Vec::new();
        while let Some(parent) = key.parent() {
            path.push(format!("{}/{}/{}", parent.run.app, parent.run.tenant, parent.model));
            key = parent;
        }
        assert_eq!(path, ["asset/*/gpt", "*/*/gpt", "*/*/*"]);
    }
}
