//! The cases, and the entries of each.

use std::fmt;

use crate::order::Order;

/// The code that runs the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Wattle with closures as nodes.
    Native,
    /// Wattle with a WebAssembly guest, in a fresh instance for each task.
    Wasm,
    /// LangGraph for Python.
    Python,
    /// LangGraph.js.
    Node,
}

impl Side {
    /// Returns the name in tables and files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "wattle native",
            Self::Wasm => "wattle wasm",
            Self::Python => "langgraph python",
            Self::Node => "langgraph.js",
        }
    }
}

/// A side with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The side.
    pub(crate) side: Side,
    /// The store, with the suffix `-sync` if every step waits for its checkpoint. Otherwise Wattle
    /// uses the durability `commit` and LangGraph its default, `async`.
    pub(crate) store: &'static str,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.side.name(), self.store)
    }
}

/// One case with its sizes.
pub(crate) struct Contest {
    /// The name in tables, files and on the command line.
    pub(crate) name: &'static str,
    /// The name in the protocol.
    pub(crate) case: &'static str,
    /// The description in tables.
    pub(crate) what: &'static str,
    lanes: usize,
    runs: usize,
    /// Whether bursts are repeated for some time. Otherwise one run is measured.
    timed: bool,
    own: &'static [&'static str],
    python: &'static [&'static str],
}

/// All cases.
pub(crate) const CONTESTS: &[Contest] = &[
    Contest {
        name: "line",
        case: "line",
        what: "ten nodes in a line, 1 KB of state, one run at a time",
        lanes: 1,
        runs: 20,
        timed: true,
        own: &["memory", "redb", "redb-sync", "postgres", "postgres-sync"],
        python: PYTHON,
    },
    Contest {
        name: "line-64",
        case: "line",
        what: "the same, 64 runs at once",
        lanes: 64,
        runs: 2,
        timed: true,
        own: &["memory", "redb", "redb-sync", "postgres", "postgres-sync"],
        python: PYTHON,
    },
    Contest {
        name: "fan-out",
        case: "fan-out",
        what: "100 sends of 1 KB and a join",
        lanes: 1,
        runs: 5,
        timed: true,
        own: &["memory", "redb", "postgres"],
        python: &["none", "memory", "sqlite", "postgres"],
    },
    Contest {
        name: "loop",
        case: "loop",
        what: "a loop of 1,000 steps, 1 KB of state",
        lanes: 1,
        runs: 1,
        timed: true,
        own: &["memory", "redb", "redb-sync", "postgres"],
        python: &["none", "memory", "sqlite", "sqlite-sync", "postgres"],
    },
    Contest {
        name: "history",
        case: "history",
        what: "reads of a thread with 1,000 checkpoints",
        lanes: 1,
        runs: 1,
        timed: false,
        own: &["memory", "redb", "postgres"],
        python: &["memory", "sqlite", "postgres"],
    },
    Contest {
        name: "append",
        case: "append",
        what: "200 steps that each append 1 KB to a list",
        lanes: 1,
        runs: 1,
        timed: false,
        own: &["memory", "redb", "postgres"],
        python: &["memory", "sqlite", "postgres"],
    },
];

const PYTHON: &[&str] =
    &["none", "memory", "memory-sync", "sqlite", "sqlite-sync", "postgres", "postgres-sync"];

impl Contest {
    /// Returns the entries, alternating between Wattle and LangGraph.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let of = |side, stores: &[&'static str]| -> Vec<Entry> {
            stores.iter().map(|&store| Entry { side, store }).collect()
        };
        // The other cases measure reads and bytes on disk, for which the code of the nodes is
        // irrelevant.
        let wasm = if self.timed { self.own } else { &[] };
        let mut own = [of(Side::Native, self.own), of(Side::Wasm, wasm)].concat();
        let mut theirs = [of(Side::Python, self.python), of(Side::Node, &["memory"])].concat();
        own.reverse();
        theirs.reverse();
        let mut entries = Vec::new();
        while !own.is_empty() || !theirs.is_empty() {
            entries.extend(own.pop());
            entries.extend(theirs.pop());
        }
        entries
    }

    /// Returns true if bursts are repeated for some time.
    pub(crate) fn timed(&self) -> bool {
        self.timed
    }

    /// Returns the order to a process that measures this case.
    pub(crate) fn order(&self, place: String, seconds: f64) -> Order {
        let seconds = if self.timed { seconds } else { 0.0 };
        Order { lanes: self.lanes, runs: self.runs, ..Order::new(place, seconds) }
    }
}
