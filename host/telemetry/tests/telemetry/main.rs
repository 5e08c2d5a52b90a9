//! Tests of the traces, metrics and statistics of runs in a store.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod labels;
mod outage;
mod spans;
mod statistics;
mod support;
