//! Ratios of Wattle to LangGraph, and their goals.

use serde::Serialize;

use crate::peer::contest::Side;
use crate::peer::summary::Summary;

/// A compared value.
#[derive(Clone, Copy)]
enum Measure {
    Speed,
    Page,
    All,
    Latest,
    Memory,
    Stored,
}

impl Measure {
    fn of(self, row: &Summary) -> Option<f64> {
        match self {
            Self::Speed => Some(row.steps_per_second),
            Self::Page => row.reads.map(|reads| reads.page_ms),
            Self::All => row.reads.map(|reads| reads.all_ms),
            Self::Latest => row.reads.map(|reads| reads.latest_ms),
            Self::Memory => Some(row.peak_rss_bytes),
            Self::Stored => row.stored_bytes,
        }
    }

    fn is_better(self, left: f64, right: f64) -> bool {
        self.times(left, right) > 1.0
    }

    /// Returns how many times better `ours` is.
    fn times(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Self::Speed => ours / theirs,
            _ => theirs / ours,
        }
    }
}

/// One comparison. If it names several stores of LangGraph, the best of them counts.
struct Comparison {
    what: &'static str,
    case: &'static str,
    measure: Measure,
    ours: &'static str,
    peer: Side,
    theirs: &'static [&'static str],
    /// The goal of the ratio with a guest.
    aim: Option<f64>,
    /// The goal as the maximum value of Wattle, for measures in which less is better. The ratio that
    /// it requires is computed.
    at_most: Option<f64>,
}

/// Creates a comparison of speed.
const fn speed(
    what: &'static str,
    case: &'static str,
    ours: &'static str,
    theirs: &'static [&'static str],
    aim: Option<f64>,
) -> Comparison {
    Comparison { aim, ..other(what, case, Measure::Speed, ours, theirs) }
}

/// Creates a comparison without a goal.
const fn other(
    what: &'static str,
    case: &'static str,
    measure: Measure,
    ours: &'static str,
    theirs: &'static [&'static str],
) -> Comparison {
    Comparison { what, case, measure, ours, peer: Side::Python, theirs, aim: None, at_most: None }
}

/// The goal for the peak memory of a process that executes one run at a time.
const PEAK_BYTES: f64 = 77e6;

const MEMORY: &[&str] = &["memory", "memory-sync"];
const SQLITE: &[&str] = &["sqlite", "sqlite-sync"];
const POSTGRES: &[&str] = &["postgres", "postgres-sync"];

const COMPARISONS: &[Comparison] = &[
    speed("memory / InMemorySaver", "line", "memory", MEMORY, Some(20.0)),
    speed("memory / InMemorySaver", "line-64", "memory", MEMORY, Some(20.0)),
    speed("memory / InMemorySaver", "fan-out", "memory", MEMORY, None),
    speed("memory / InMemorySaver", "loop", "memory", MEMORY, None),
    Comparison {
        peer: Side::Node,
        ..speed("memory / MemorySaver of LangGraph.js", "line", "memory", &["memory"], None)
    },
    speed("redb, output commit / SqliteSaver", "line", "redb", SQLITE, Some(12.0)),
    speed("redb, output commit / SqliteSaver", "line-64", "redb", SQLITE, Some(40.0)),
    speed("redb, output commit / SqliteSaver", "fan-out", "redb", SQLITE, None),
    speed("redb, output commit / SqliteSaver", "loop", "redb", SQLITE, None),
    speed("redb, sync / SqliteSaver, sync", "line", "redb-sync", &["sqlite-sync"], Some(4.0)),
    speed("redb, sync / SqliteSaver, sync", "line-64", "redb-sync", &["sqlite-sync"], Some(40.0)),
    speed("redb, sync / SqliteSaver, sync", "loop", "redb-sync", &["sqlite-sync"], None),
    speed("PostgreSQL / PostgresSaver", "line", "postgres", POSTGRES, Some(3.0)),
    speed("PostgreSQL / PostgresSaver", "line-64", "postgres", POSTGRES, Some(3.0)),
    speed("PostgreSQL / PostgresSaver", "loop", "postgres", POSTGRES, None),
    speed("both sync", "line", "postgres-sync", &["postgres-sync"], None),
    speed("both sync", "line-64", "postgres-sync", &["postgres-sync"], None),
    other("20 of the history, SqliteSaver", "history", Measure::Page, "redb", SQLITE),
    other("all of the history, SqliteSaver", "history", Measure::All, "redb", SQLITE),
    other("latest state, SqliteSaver", "history", Measure::Latest, "redb", SQLITE),
    other("20 of the history, PostgresSaver", "history", Measure::Page, "postgres", POSTGRES),
    other("all of the history, PostgresSaver", "history", Measure::All, "postgres", POSTGRES),
    other("latest state, PostgresSaver", "history", Measure::Latest, "postgres", POSTGRES),
    other("bytes on disk, SqliteSaver", "append", Measure::Stored, "redb", SQLITE),
    other("bytes on disk, PostgresSaver", "append", Measure::Stored, "postgres", POSTGRES),
    Comparison {
        at_most: Some(PEAK_BYTES),
        ..other("peak memory, SqliteSaver", "line", Measure::Memory, "redb", SQLITE)
    },
    other("peak memory, SqliteSaver", "line-64", Measure::Memory, "redb", SQLITE),
];

/// The result of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct Compared {
    /// The compared stores.
    pub(crate) what: &'static str,
    /// The case.
    pub(crate) case: &'static str,
    /// How many times better Wattle is with closures.
    pub(crate) native: Option<f64>,
    /// How many times better Wattle is with a guest.
    pub(crate) wasm: Option<f64>,
    /// The goal of the ratio with a guest.
    pub(crate) aim: Option<f64>,
}

impl Compared {
    /// Compares the ratio with a guest with the goal.
    pub(crate) fn verdict(&self) -> &'static str {
        let Some(aim) = self.aim else { return "" };
        let meets = |ratio: Option<f64>| ratio.is_some_and(|times| times >= aim);
        match (meets(self.wasm), meets(self.native)) {
            (true, _) => "met",
            (false, true) => "native only",
            (false, false) => "missed",
        }
    }
}

/// Returns the comparisons for which the rows have values.
pub(crate) fn all(rows: &[Summary]) -> Vec<Compared> {
    COMPARISONS.iter().filter_map(|comparison| comparison.make(rows)).collect()
}

impl Comparison {
    fn make(&self, rows: &[Summary]) -> Option<Compared> {
        let find = |side: Side, store: &str| {
            let is = |row: &&Summary| {
                row.case == self.case && row.side == side.name() && row.store == store
            };
            self.measure.of(rows.iter().find(is)?)
        };
        let theirs = self.theirs.iter().filter_map(|store| find(self.peer, store));
        let best = theirs.reduce(
            |best, other| {
                if self.measure.is_better(other, best) { other } else { best }
            },
        )?;
        let times = |side| Some(self.measure.times(find(side, self.ours)?, best));
        let (native, wasm) = (times(Side::Native), times(Side::Wasm));
        (native.is_some() || wasm.is_some()).then_some(Compared {
            what: self.what,
            case: self.case,
            native,
            wasm,
            aim: self.aim.or_else(|| Some(self.measure.times(self.at_most?, best))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Compared, PEAK_BYTES, Summary, all};
    use crate::peer::contest::Side;

    fn row(side: Side, store: &'static str, steps_per_second: f64) -> Summary {
        Summary {
            case: "line",
            side: side.name(),
            store,
            steps_per_second,
            slowest: steps_per_second,
            fastest: steps_per_second,
            peak_rss_bytes: 1.0,
            stored_bytes: None,
            reads: None,
        }
    }

    /// Returns the comparison of stores in memory.
    fn compared(native: f64, wasm: f64) -> Compared {
        let rows = [
            row(Side::Native, "memory", native),
            row(Side::Wasm, "memory", wasm),
            row(Side::Python, "memory", 10.0),
            row(Side::Python, "memory-sync", 20.0),
        ];
        all(&rows).swap_remove(0)
    }

    #[test]
    fn the_best_langgraph_store_counts() {
        let compared = compared(1_000.0, 500.0);
        assert_eq!((compared.native, compared.wasm), (Some(50.0), Some(25.0)));
    }

    #[test]
    fn a_goal_is_met_if_the_guest_meets_it() {
        assert_eq!(compared(400.0, 400.0).verdict(), "met");
        assert_eq!(compared(400.0, 399.0).verdict(), "native only");
        assert_eq!(compared(399.0, 399.0).verdict(), "missed");
    }

    #[test]
    fn each_row_has_its_own_goal() {
        let aims = |store, saver| {
            let of = |case| {
                let at = |side, store| Summary { case, ..row(side, store, 1.0) };
                let compared = all(&[at(Side::Wasm, store), at(Side::Python, saver)]);
                compared.first().and_then(|compared| compared.aim)
            };
            ["line", "line-64", "loop"].map(of)
        };
        assert_eq!(aims("memory", "memory"), [Some(20.0), Some(20.0), None]);
        assert_eq!(aims("redb", "sqlite"), [Some(12.0), Some(40.0), None]);
        assert_eq!(aims("redb-sync", "sqlite-sync"), [Some(4.0), Some(40.0), None]);
    }

    #[test]
    fn peak_memory_has_a_maximum() {
        let verdict = |guest_bytes| {
            let peak =
                |side, store, peak_rss_bytes| Summary { peak_rss_bytes, ..row(side, store, 1.0) };
            let rows = [
                peak(Side::Native, "redb", 60e6),
                peak(Side::Wasm, "redb", guest_bytes),
                peak(Side::Python, "sqlite", 80e6),
            ];
            let compared = all(&rows);
            compared.iter().find(|it| it.what.starts_with("peak memory")).unwrap().verdict()
        };
        assert_eq!(verdict(PEAK_BYTES - 1.0), "met");
        assert_eq!(verdict(PEAK_BYTES + 1.0), "native only");
    }

    #[test]
    fn comparisons_need_values_of_both_sides() {
        assert!(all(&[row(Side::Native, "memory", 1.0)]).is_empty());
    }
}
