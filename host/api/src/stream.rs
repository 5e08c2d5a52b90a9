//! Event logs as streams. One file for each wire form.

pub mod sse;
