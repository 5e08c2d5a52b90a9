//! Misdeeds that guests of every language can do, and how the host ends them.

use serde_json::Value;
use wattle_graph::event::TaskFault;
use wattle_graph::failure::code;

/// A misdeed: a node of `wattle-guest-misdeeds`, and of its twins in other languages.
pub struct Misdeed {
    /// The node.
    pub node: &'static str,
    /// The input of the node, as JSON.
    pub input: &'static str,
    /// The code of the failure.
    pub code: &'static str,
    /// The limit that the failure names.
    pub limit: Option<&'static str>,
}

/// Loops forever.
pub const SPIN: Misdeed = Misdeed::at_limit("spin", "{}", "cpu");

/// Allocates until the host ends it.
pub const HOG: Misdeed = Misdeed::at_limit("hog", "{}", "memory");

/// Writes a text of 2 MiB.
pub const HUGE_OUTPUT: Misdeed =
    Misdeed::at_limit("huge_output", r#"{ "size": 2097152 }"#, "output");

/// Writes arrays that are nested too deep for the log.
pub const DEEP_JSON: Misdeed =
    Misdeed { node: "deep_json", input: r#"{ "depth": 500 }"#, code: code::INVALID, limit: None };

/// All of them.
pub const ALL: [&Misdeed; 4] = [&SPIN, &HOG, &HUGE_OUTPUT, &DEEP_JSON];

impl Misdeed {
    /// Returns a misdeed that ends at a limit.
    pub const fn at_limit(node: &'static str, input: &'static str, limit: &'static str) -> Self {
        Self { node, input, code: code::LIMIT, limit: Some(limit) }
    }

    /// Returns the input of the node.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub fn input(&self) -> Value {
        serde_json::from_str(self.input).expect("an input is JSON")
    }

    /// Returns the cause of the failure.
    pub fn fault(&self) -> TaskFault {
        if self.limit.is_some() { TaskFault::Limit } else { TaskFault::Failure }
    }
}
