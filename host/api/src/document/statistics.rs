//! JSON bodies of statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_run::ports::statistics::{
    StatisticsCounts, StatisticsReport, StatisticsSeries, StatisticsStep,
};

/// Counts of ended runs over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatisticsDocument {
    /// Length of an interval: `minute`, `hour` or `day`.
    pub step: String,
    /// Start of the first interval, in milliseconds since 1970.
    pub from_ms: i64,
    /// Start of the last interval, in milliseconds since 1970.
    pub to_ms: i64,
    /// The series with the largest counts first. Empty if nothing is counted.
    pub series: Vec<StatisticsSeriesDocument>,
    /// False if the report may lack some of the selected counts, because an interval had too many
    /// names of apps and tenants.
    pub is_complete: bool,
}

/// The counts of an app, a model, a tenant, or of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatisticsSeriesDocument {
    /// Name of the app, model or tenant. Absent without `by`, for runs without a tenant, and for
    /// the remaining names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// True for the series that adds up all remaining names, which include the models of tenants.
    pub is_other: bool,
    /// Counts of all intervals together.
    pub total: StatisticsCountsDocument,
    /// Counts by interval, the oldest first. Intervals without counts are absent.
    pub points: Vec<StatisticsPointDocument>,
}

/// The counts of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatisticsPointDocument {
    /// Start of the interval, in milliseconds since 1970.
    pub start_ms: i64,
    /// The counts.
    pub counts: StatisticsCountsDocument,
}

/// Counts of ended runs and of their model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatisticsCountsDocument {
    /// Runs by status.
    pub runs: EndedRunsDocument,
    /// Failed runs by code. Codes of guests are counted as `other`.
    pub failures: BTreeMap<String, u64>,
    /// How often runs reached a limit, by the name of the limit.
    pub limits: BTreeMap<String, u64>,
    /// Runs by duration, the shortest first.
    pub durations: Vec<DurationDocument>,
    /// Model calls that were executed.
    pub model_calls: u64,
    /// Model calls that failed.
    pub failed_model_calls: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of completions.
    pub output_tokens: u64,
    /// Cost of the tokens of models with a price, in the currency of the prices. Absent if none of
    /// the models has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Tokens of models without a price.
    pub unpriced_tokens: u64,
}

/// Ended runs by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedRunsDocument {
    /// Runs that reached the end of the graph.
    pub completed: u64,
    /// Runs that were interrupted.
    pub interrupted: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
}

/// Runs whose duration is in one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DurationDocument {
    /// Upper bound of the range in milliseconds, a power of two. The lower bound is half of the
    /// upper bound.
    pub up_to_ms: u64,
    /// Number of runs.
    pub runs: u64,
}

impl StatisticsDocument {
    /// Describes a report.
    pub fn new(step: StatisticsStep, report: StatisticsReport) -> Self {
        let StatisticsReport { from_ms, to_ms, series, is_complete } = report;
        Self {
            step: step.name().to_owned(),
            from_ms,
            to_ms,
            series: series.into_iter().map(Into::into).collect(),
            is_complete,
        }
    }
}

impl From<StatisticsSeries> for StatisticsSeriesDocument {
    fn from(series: StatisticsSeries) -> Self {
        let StatisticsSeries { name, is_other, total, points } = series;
        let points = points
            .into_iter()
            .map(|(start_ms, counts)| StatisticsPointDocument { start_ms, counts: counts.into() });
        Self { name, is_other, total: total.into(), points: points.collect() }
    }
}

impl From<StatisticsCounts> for StatisticsCountsDocument {
    fn from(counts: StatisticsCounts) -> Self {
        let StatisticsCounts { completed, interrupted, failed, cancelled, .. } = counts;
        let durations = counts.durations.into_iter();
        Self {
            runs: EndedRunsDocument { completed, interrupted, failed, cancelled },
            failures: counts.failures,
            limits: counts.limits,
            durations: durations
                .map(|(up_to_ms, runs)| DurationDocument { up_to_ms, runs })
                .collect(),
            model_calls: counts.model_calls,
            failed_model_calls: counts.failed_model_calls,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            cost: counts.cost,
            unpriced_tokens: counts.unpriced_tokens,
        }
    }
}
