//! Builds a report from buckets: selects rows, groups them into series, and computes costs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::failure::{Failure, code};
use wattle_graph::id::AppName;
use wattle_run::ports::statistics::{
    ModelPrices, StatisticsCounts, StatisticsGroup, StatisticsQuery, StatisticsReport,
    StatisticsSeries,
};

use crate::statistics::bucket::Bucket;
use crate::statistics::counts::{ModelCounts, ModelKey, REST, RunCounts, RunKey};
use crate::statistics::limit::{REPORT_INTERVALS, REPORT_SERIES};
use crate::statistics::rows::Counts as _;

/// Number of intervals of a report whose query has no start: one hour of minutes, or two months of
/// days.
const DEFAULT_INTERVALS: i64 = 60;

/// The intervals of a report: the start of the first interval and the start of the last interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
}

impl Range {
    /// Returns the intervals that a query selects. A query without an end ends with the current
    /// interval.
    pub(super) fn of(query: &StatisticsQuery, now_ms: i64) -> Result<Self, Failure> {
        let step = query.step;
        let start_of = |at_ms: i64| step.start_of(at_ms.max(0));
        let to_ms = start_of(query.to_ms.unwrap_or(now_ms));
        let default_from = to_ms - (DEFAULT_INTERVALS - 1) * step.ms();
        let from_ms = start_of(query.from_ms.unwrap_or(default_from));
        if from_ms > to_ms {
            let message = "`from_ms` is after `to_ms`, or in the future";
            return Err(Failure::new(code::INVALID, message));
        }
        let intervals = (to_ms - from_ms) / step.ms() + 1;
        if intervals > REPORT_INTERVALS {
            let message = format!(
                "{intervals} intervals of a {} are more than {REPORT_INTERVALS}; choose a longer \
                 `step` or a shorter time",
                step.name()
            );
            return Err(Failure::new(code::INVALID, message));
        }
        Ok(Self { from_ms, to_ms })
    }
}

/// Determines the names with the largest counts. Each of these names gets its own series.
pub(super) struct Ranking<'q> {
    query: &'q StatisticsQuery,
    weights: BTreeMap<String, u64>,
}

impl<'q> Ranking<'q> {
    pub(super) fn new(query: &'q StatisticsQuery) -> Self {
        Self { query, weights: BTreeMap::new() }
    }

    /// Adds the counts of a bucket.
    pub(super) fn add(&mut self, bucket: &Bucket) {
        for (key, counts) in bucket.runs.iter() {
            if let Some(name) = name_of_runs(self.query, key) {
                self.add_to(name, counts.weight());
            }
        }
        for (key, counts) in bucket.models.iter() {
            if let Some(name) = name_of_calls(self.query, key) {
                self.add_to(name, counts.weight());
            }
        }
    }

    fn add_to(&mut self, name: &str, weight: u64) {
        match self.weights.get_mut(name) {
            Some(known) => *known += weight,
            None => {
                self.weights.insert(name.to_owned(), weight);
            }
        }
    }

    /// Returns the names that get their own series.
    pub(super) fn names(self) -> BTreeSet<String> {
        let mut all: Vec<_> = self.weights.into_iter().filter(|(name, _)| name != REST).collect();
        all.sort_by_key(|(_, weight)| Reverse(*weight));
        all.into_iter().take(REPORT_SERIES).map(|(name, _)| name).collect()
    }
}

/// Builds a report.
pub(super) struct ReportBuilder<'q> {
    query: &'q StatisticsQuery,
    prices: &'q ModelPrices,
    /// The names that get their own series.
    names: BTreeSet<String>,
    series: BTreeMap<String, StatisticsSeries>,
    is_complete: bool,
}

impl<'q> ReportBuilder<'q> {
    pub(super) fn new(
        query: &'q StatisticsQuery,
        prices: &'q ModelPrices,
        names: BTreeSet<String>,
    ) -> Self {
        Self { query, prices, names, series: BTreeMap::new(), is_complete: true }
    }

    /// Adds the counts of a bucket.
    pub(super) fn add(&mut self, start_ms: i64, bucket: &Bucket) {
        for (key, counts) in bucket.runs.iter() {
            self.is_complete &= !hides_selected(self.query, key);
            if let Some(name) = name_of_runs(self.query, key) {
                self.add_to(name, start_ms, &report_runs(counts));
            }
        }
        for (key, counts) in bucket.models.iter() {
            self.is_complete &= !hides_selected(self.query, &key.run);
            if let Some(name) = name_of_calls(self.query, key) {
                self.add_to(name, start_ms, &report_calls(&key.model, *counts, self.prices));
            }
        }
    }

    fn add_to(&mut self, name: &str, start_ms: i64, counts: &StatisticsCounts) {
        let is_named = self.query.group.is_none() || self.names.contains(name);
        let name = if is_named { name } else { REST };
        let series = self.series.entry(name.to_owned()).or_default();
        series.total.add(counts);
        series.points.entry(start_ms).or_default().add(counts);
    }

    /// Returns the report.
    pub(super) fn build(self, range: Range) -> StatisticsReport {
        let series = self.series.into_iter().map(|(name, series)| StatisticsSeries {
            is_other: name == REST,
            // The only empty name is the tenant name of runs without a tenant.
            name: Some(name).filter(|name| !name.is_empty() && name != REST),
            ..series
        });
        let mut series: Vec<_> = series.collect();
        series.sort_by_key(|it| (it.is_other, Reverse(weight(&it.total))));
        let Range { from_ms, to_ms } = range;
        StatisticsReport { from_ms, to_ms, series, is_complete: self.is_complete }
    }
}

/// Returns the name of the series of a row of runs; `None` if the query does not select it.
fn name_of_runs<'k>(query: &StatisticsQuery, key: &'k RunKey) -> Option<&'k str> {
    if !selects(query, key) {
        return None;
    }
    match query.group {
        None => Some(""),
        Some(StatisticsGroup::App) => Some(&key.app),
        Some(StatisticsGroup::Tenant) => Some(&key.tenant),
        Some(StatisticsGroup::Model) => None,
    }
}

/// Returns the name of the series of a row of model calls; `None` if the query does not select it.
fn name_of_calls<'k>(query: &StatisticsQuery, key: &'k ModelKey) -> Option<&'k str> {
    match query.group {
        Some(StatisticsGroup::Model) => selects(query, &key.run).then_some(key.model.as_str()),
        _ => name_of_runs(query, &key.run),
    }
}

/// Returns each condition of a query together with the value of the row.
fn conditions<'k>(query: &'k StatisticsQuery, key: &'k RunKey) -> [(Option<&'k str>, &'k str); 2] {
    let app = query.app.as_ref().map(AppName::as_str);
    [(app, key.app.as_str()), (query.tenant.as_deref(), key.tenant.as_str())]
}

/// Returns true if a query selects a row.
fn selects(query: &StatisticsQuery, key: &RunKey) -> bool {
    conditions(query, key).iter().all(|(wanted, found)| wanted.is_none_or(|it| it == *found))
}

/// Returns true if a row merges rows some of which the query may select.
fn hides_selected(query: &StatisticsQuery, key: &RunKey) -> bool {
    let can_match = |wanted: &str, found: &str| wanted == found || found == REST;
    let mut all = conditions(query, key).into_iter();
    !selects(query, key) && all.all(|(wanted, found)| wanted.is_none_or(|it| can_match(it, found)))
}

fn report_runs(counts: &RunCounts) -> StatisticsCounts {
    let durations = counts.durations.iter();
    StatisticsCounts {
        completed: counts.completed,
        interrupted: counts.interrupted,
        failed: counts.failed,
        cancelled: counts.cancelled,
        failures: counts.failures.clone(),
        limits: counts.limits.clone(),
        durations: durations
            .map(|(exponent, runs)| (1_u64 << (*exponent).min(63), *runs))
            .collect(),
        ..StatisticsCounts::default()
    }
}

fn report_calls(model: &str, counts: ModelCounts, prices: &ModelPrices) -> StatisticsCounts {
    let ModelCounts { calls, failed, input_tokens, output_tokens } = counts;
    let cost = prices.get(model).map(|price| price.cost(input_tokens, output_tokens));
    StatisticsCounts {
        model_calls: calls,
        failed_model_calls: failed,
        input_tokens,
        output_tokens,
        cost,
        unpriced_tokens: if cost.is_none() { input_tokens + output_tokens } else { 0 },
        ..StatisticsCounts::default()
    }
}

fn weight(counts: &StatisticsCounts) -> u64 {
    let StatisticsCounts { completed, interrupted, failed, cancelled, model_calls, .. } = counts;
    completed + interrupted + failed + cancelled + model_calls
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::statistics::{ModelPrice, StatisticsStep};

    use super::*;

    fn bucket(app: &str, tenant: &str, completed: u64, model: &str) -> Bucket {
        let run = RunKey { app: app.into(), tenant: tenant.into() };
        let mut bucket = Bucket::default();
        bucket.runs.add(run.clone(), &RunCounts { completed, ..RunCounts::default() });
        let calls =
            ModelCounts { calls: completed, failed: 0, input_tokens: 1_000_000, output_tokens: 0 };
        bucket.models.add(ModelKey { run, model: model.into() }, &calls);
        bucket
    }

    fn report(query: &StatisticsQuery, buckets: &[(i64, Bucket)]) -> StatisticsReport {
        let price = ModelPrice { input: 0.5, output: 2.0 };
        let prices = ModelPrices::from([("gpt".to_owned(), price)]);
        let mut ranking = Ranking::new(query);
        for (_, bucket) in buckets {
            ranking.add(bucket);
        }
        let mut builder = ReportBuilder::new(query, &prices, ranking.names());
        for (start_ms, bucket) in buckets {
            builder.add(*start_ms, bucket);
        }
        builder.build(Range { from_ms: 0, to_ms: 60_000 })
    }

    fn sample() -> Vec<(i64, Bucket)> {
        vec![
            (0, bucket("asset", "acme", 3, "gpt")),
            (0, bucket("asset", "", 1, "own")),
            (60_000, bucket("travel", "acme", 2, "gpt")),
        ]
    }

    /// Returns name, runs and model calls of each series.
    fn summary(report: &StatisticsReport) -> Vec<(Option<&str>, u64, u64)> {
        let series = report.series.iter();
        series.map(|it| (it.name.as_deref(), it.total.completed, it.total.model_calls)).collect()
    }

    #[test]
    fn counts_are_grouped_into_series() {
        for (group, expected) in [
            (None, vec![(None, 6, 6)]),
            (Some(StatisticsGroup::App), vec![(Some("asset"), 4, 4), (Some("travel"), 2, 2)]),
            (Some(StatisticsGroup::Tenant), vec![(Some("acme"), 5, 5), (None, 1, 1)]),
            (Some(StatisticsGroup::Model), vec![(Some("gpt"), 0, 5), (Some("own"), 0, 1)]),
        ] {
            let query = StatisticsQuery { group, ..StatisticsQuery::default() };
            let report = report(&query, &sample());
            assert_eq!(summary(&report), expected, "{group:?}");
            assert!(report.is_complete && report.series.iter().all(|it| !it.is_other));
        }
    }

    #[test]
    fn points_and_costs_add_up_to_the_total() {
        let report = report(&StatisticsQuery::default(), &sample());
        let series = &report.series[0];
        assert_eq!((series.points.len(), series.points[&0].completed), (2, 4));
        let mut sum = StatisticsCounts::default();
        for point in series.points.values() {
            sum.add(point);
        }
        assert_eq!(sum, series.total);
        assert_eq!((sum.cost, sum.unpriced_tokens), (Some(1.0), 1_000_000));
    }

    #[test]
    fn only_selected_rows_are_counted() {
        let tenant = |name: &str| StatisticsQuery {
            tenant: Some(name.into()),
            ..StatisticsQuery::default()
        };
        assert_eq!(summary(&report(&tenant("acme"), &sample())), [(None, 5, 5)]);
        assert!(report(&tenant("globex"), &sample()).series.is_empty());
        let app = Some(AppName::new("asset").unwrap());
        let asset = StatisticsQuery { app, ..tenant("acme") };
        assert_eq!(summary(&report(&asset, &sample())), [(None, 3, 3)]);

        // The merged rows may contain some of the selected runs.
        let folded = |app: &str| [sample(), vec![(0, bucket(app, REST, 7, "gpt"))]].concat();
        for (rest, is_complete) in [("asset", false), (REST, false), ("travel", true)] {
            let report = report(&asset, &folded(rest));
            assert_eq!((summary(&report), report.is_complete), (vec![(None, 3, 3)], is_complete));
        }
        let all = StatisticsQuery::default();
        assert!(report(&all, &folded(REST)).is_complete, "nothing is selected by name");
    }

    #[test]
    fn remaining_names_share_one_series() {
        let buckets = (1..=50).map(|n| (0, bucket(&format!("app-{n}"), "", n, "gpt")));
        let buckets =
            [buckets.collect::<Vec<_>>(), vec![(0, bucket(REST, REST, 1_000, REST))]].concat();
        let group = Some(StatisticsGroup::App);
        let report = report(&StatisticsQuery { group, ..StatisticsQuery::default() }, &buckets);
        assert_eq!(report.series.len(), REPORT_SERIES + 1);
        assert_eq!(report.series[0].name.as_deref(), Some("app-50"));
        let other = report.series.last().unwrap();
        let expected: u64 = 1_000 + (1..=30).sum::<u64>();
        assert_eq!((other.is_other, &other.name, other.total.completed), (true, &None, expected));
    }

    #[test]
    fn number_of_intervals_is_bounded() {
        let of = |step, from_ms, to_ms| {
            let query = StatisticsQuery { step, from_ms, to_ms, ..StatisticsQuery::default() };
            let range = Range::of(&query, 90_000_000).map(|it| (it.from_ms, it.to_ms));
            range.map_err(|failure| failure.message)
        };
        let (minute, hour) = (StatisticsStep::Minute, StatisticsStep::Hour);
        assert_eq!(of(minute, None, None), Ok((90_000_000 - 59 * 60_000, 90_000_000)));
        assert_eq!(of(hour, None, None), Ok((0, 90_000_000)));
        assert_eq!(of(hour, Some(3_600_001), Some(7_199_999)), Ok((3_600_000, 3_600_000)));
        assert_eq!(of(hour, Some(i64::MIN), Some(5)), Ok((0, 0)));
        assert!(of(hour, Some(7_200_000), Some(5)).unwrap_err().contains("after"));
        assert!(of(minute, Some(0), Some(i64::MAX)).unwrap_err().contains("longer `step`"));
        assert!(of(minute, Some(0), Some(1_499 * 60_000)).is_ok());
        assert!(of(minute, Some(0), Some(1_500 * 60_000)).is_err());
    }
}
