//! Port: statistics of ended runs over time, which the hosts of a store keep together.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;

/// Number of tokens to which a price applies.
const PRICED_TOKENS: f64 = 1e6;

/// Price of a million tokens of a model. All prices are in the same currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
}

impl ModelPrice {
    /// Returns the cost of tokens.
    #[must_use]
    pub fn cost(self, input_tokens: u64, output_tokens: u64) -> f64 {
        let cost = input_tokens as f64 * self.input + output_tokens as f64 * self.output;
        cost / PRICED_TOKENS
    }
}

/// Prices by model name. Prices are set per model and not per route, because a route can call
/// several models.
pub type ModelPrices = BTreeMap<String, ModelPrice>;

/// The length of an interval of statistics. Intervals begin at multiples of this length since 1970,
/// in UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum StatisticsStep {
    /// One minute.
    Minute,
    /// One hour.
    #[default]
    Hour,
    /// One day of UTC.
    Day,
}

impl StatisticsStep {
    /// All lengths, the shortest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Returns the name of the length, such as `minute`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// Returns the start of the interval that contains a time, both in milliseconds since 1970.
    #[must_use]
    pub const fn start_of(self, at_ms: i64) -> i64 {
        at_ms.saturating_sub(at_ms.rem_euclid(self.ms()))
    }
}

/// How the counts of a report are grouped into series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatisticsGroup {
    /// One series for each app.
    App,
    /// One series for each model. These series count model calls and no runs.
    Model,
    /// One series for each tenant.
    Tenant,
}

/// Selects statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatisticsQuery {
    /// Length of the intervals.
    pub step: StatisticsStep,
    /// Time in the first interval, in milliseconds since 1970. Default: a span before `to_ms`.
    pub from_ms: Option<i64>,
    /// Time in the last interval, in milliseconds since 1970. Default: now.
    pub to_ms: Option<i64>,
    /// How the counts are grouped into series; `None` for one series of all counts.
    pub group: Option<StatisticsGroup>,
    /// Only runs of this app.
    pub app: Option<AppName>,
    /// Only runs of this tenant; `None` for the runs of all tenants.
    pub tenant: Option<String>,
}

/// Counts of ended runs and of their model calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatisticsCounts {
    /// Runs that reached the end of the graph.
    pub completed: u64,
    /// Runs that were interrupted.
    pub interrupted: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
    /// Failed runs by the code of the failure.
    pub failures: BTreeMap<String, u64>,
    /// How often runs reached a limit, by the name of the limit.
    pub limits: BTreeMap<String, u64>,
    /// Runs by duration. The key is the upper bound in milliseconds, a power of two.
    pub durations: BTreeMap<u64, u64>,
    /// Model calls that were executed.
    pub model_calls: u64,
    /// Model calls that failed.
    pub failed_model_calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of completions.
    pub output_tokens: u64,
    /// Cost of the tokens of models with a price; `None` if there are none.
    pub cost: Option<f64>,
    /// Tokens of models without a price.
    pub unpriced_tokens: u64,
}

impl StatisticsCounts {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.interrupted += other.interrupted;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        add_all(&mut self.failures, &other.failures);
        add_all(&mut self.limits, &other.limits);
        add_all(&mut self.durations, &other.durations);
        self.model_calls += other.model_calls;
        self.failed_model_calls += other.failed_model_calls;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        if let Some(cost) = other.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        self.unpriced_tokens += other.unpriced_tokens;
    }
}

fn add_all<K: Clone + Ord>(counts: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
    for (key, count) in other {
        *counts.entry(key.clone()).or_default() += count;
    }
}

/// The counts of one group over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatisticsSeries {
    /// Name of the app, model or tenant. `None` without a group, for runs without a tenant, and for
    /// the series of the remaining names.
    pub name: Option<String>,
    /// True for the series that adds up the names without a series of their own.
    pub is_other: bool,
    /// Counts of all intervals together.
    pub total: StatisticsCounts,
    /// Counts by the start of the interval. Intervals without counts are absent.
    pub points: BTreeMap<i64, StatisticsCounts>,
}

/// Statistics for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsReport {
    /// Start of the first interval.
    pub from_ms: i64,
    /// Start of the last interval.
    pub to_ms: i64,
    /// The series with the largest counts first, and the series of the remaining names last.
    pub series: Vec<StatisticsSeries>,
    /// False if counts that the query selects were added to the counts of other names, because a
    /// bucket had no room.
    pub is_complete: bool,
}

/// Statistics of ended runs.
#[async_trait]
pub trait Statistics: Send + Sync {
    /// Reads the statistics of all hosts of the store. Counts of this host include every run that
    /// it has recorded; those of other hosts may be some seconds old.
    ///
    /// # Errors
    ///
    /// `invalid` for a range that is empty or has too many intervals; errors of the memory.
    async fn read(&self, query: &StatisticsQuery) -> Result<StatisticsReport, Failure>;
}
