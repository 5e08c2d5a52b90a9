//! Traces and metrics of runs in a store, sent to a stand-in that decodes them.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod labels;
mod outage;
mod spans;
mod support;
