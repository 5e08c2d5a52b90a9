//! The tool sets, by the names under which servers offer them.

use super::{probe::Probe, tools::McpTools};
use crate::standin::ontology::{Data, Graph};

/// Returns the tools of a set.
pub(super) fn set(name: &str) -> Option<&'static dyn McpTools> {
    match name {
        "probe" => Some(&Probe),
        "graph" => Some(&Graph),
        "data" => Some(&Data),
        _ => None,
    }
}
