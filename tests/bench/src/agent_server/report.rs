//! The table, as text and as JSON.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value, json};

use crate::agent_server::contestant::Contestant;
use crate::{median, print_line};

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Measure {
    /// Threads created and runs completed per second, by this number of clients.
    RoundTrips(usize),
    /// Percentile of the time from the request for a run to its first event.
    FirstEvent { clients: usize, percent: usize },
    /// Peak memory of the server.
    Memory,
}

impl Measure {
    fn name(self) -> String {
        let by =
            |clients| if clients == 1 { "1 client".into() } else { format!("{clients} clients") };
        match self {
            Self::RoundTrips(clients) => format!("round trips a second, {}", by(clients)),
            Self::FirstEvent { clients, percent } => {
                format!("ms to the first event, p{percent}, {}", by(clients))
            }
            Self::Memory => "peak memory, MB".to_owned(),
        }
    }

    /// Returns how many times better Wattle is than LangGraph.
    fn ratio(self, ours: f64, theirs: f64) -> f64 {
        if matches!(self, Self::RoundTrips(_)) { ours / theirs } else { theirs / ours }
    }
}

/// The results of one server in one round.
pub(crate) type Figures = Vec<(Measure, f64)>;

/// The results of all rounds.
#[derive(Debug, Default)]
pub(crate) struct Report(BTreeMap<Measure, BTreeMap<Contestant, Vec<f64>>>);

impl Report {
    /// Adds the results of a round.
    pub(crate) fn add(&mut self, contestant: Contestant, figures: Figures) {
        for (measure, figure) in figures {
            self.0.entry(measure).or_default().entry(contestant).or_default().push(figure);
        }
    }

    /// Returns the report as JSON.
    pub(crate) fn to_json(&self) -> Result<String> {
        let rows: Vec<Value> = self.rows().map(|row| row.to_json()).collect();
        Ok(serde_json::to_string_pretty(&json!({ "cores": cores(), "rows": rows }))?)
    }

    /// Prints a table of the medians, with the lowest and the highest round in parentheses.
    pub(crate) fn print(&self) {
        print_line(&format!("{} cores for server and client\n", cores()));
        let [redb, memory, theirs] =
            [Contestant::Redb, Contestant::Memory, Contestant::Theirs].map(Contestant::name);
        print_row(["", redb, memory, theirs, "redb", "memory"].map(str::to_owned));
        for row in self.rows() {
            let [redb, memory, theirs] = row.figures.map(|figures| figures.map(Rounds::text));
            let [of_redb, of_memory] = row.ratios();
            let ratio =
                |times: Option<f64>| times.map_or_else(String::new, |times| format!("{times:.1}x"));
            print_row([
                row.measure.name(),
                redb.unwrap_or_default(),
                memory.unwrap_or_default(),
                theirs.unwrap_or_default(),
                ratio(of_redb),
                ratio(of_memory),
            ]);
        }
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.0.iter().map(|(measure, by)| {
            let rounds = |contestant| by.get(&contestant).and_then(|figures| Rounds::new(figures));
            let figures = [Contestant::Redb, Contestant::Memory, Contestant::Theirs].map(rounds);
            Row { measure: *measure, figures }
        })
    }
}

/// A row of the table: Wattle on redb, Wattle in memory, LangGraph.
struct Row {
    measure: Measure,
    figures: [Option<Rounds>; 3],
}

impl Row {
    /// Returns how many times better Wattle is than LangGraph, on redb and in memory.
    fn ratios(&self) -> [Option<f64>; 2] {
        let [redb, memory, theirs] = self.figures.map(|figures| Some(figures?.median));
        [redb, memory].map(|ours| Some(self.measure.ratio(ours?, theirs?)))
    }

    fn to_json(&self) -> Value {
        let [redb, memory, theirs] = self.figures.map(|figures| {
            figures.map(|it| json!({ "median": it.median, "low": it.low, "high": it.high }))
        });
        let [of_redb, of_memory] = self.ratios();
        json!({
            "measure": self.measure.name(),
            "redb": redb, "memory": memory, "theirs": theirs,
            "redb_times": of_redb, "memory_times": of_memory,
        })
    }
}

/// The rounds of one measured value.
#[derive(Clone, Copy)]
struct Rounds {
    median: f64,
    low: f64,
    high: f64,
}

impl Rounds {
    fn new(figures: &[f64]) -> Option<Self> {
        let mut sorted = figures.to_vec();
        let median = median(&mut sorted);
        Some(Self { median, low: *sorted.first()?, high: *sorted.last()? })
    }

    fn text(self) -> String {
        let digits = |figure: f64| {
            if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
        };
        let Self { median, low, high } = self;
        format!("{} ({}-{})", digits(median), digits(low), digits(high))
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn print_row([what, cells @ ..]: [String; 6]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>22}")).collect();
    print_line(format!("{what:<39}{}", cells.join("")).trim_end());
}

#[cfg(test)]
mod tests {
    use super::{Contestant, Measure, Report};

    #[test]
    fn higher_throughput_and_lower_latency_are_better() {
        let mut report = Report::default();
        let trips = Measure::RoundTrips(1);
        let first = Measure::FirstEvent { clients: 1, percent: 50 };
        for (contestant, figures) in [
            (Contestant::Redb, [300.0, 2.0]),
            (Contestant::Redb, [100.0, 4.0]),
            (Contestant::Redb, [200.0, 3.0]),
            (Contestant::Theirs, [50.0, 30.0]),
        ] {
            report.add(contestant, vec![(trips, figures[0]), (first, figures[1])]);
        }
        let ratios: Vec<_> = report.rows().map(|row| row.ratios()).collect();
        assert_eq!(ratios, [[Some(4.0), None], [Some(10.0), None]]);
    }
}
