//! Event logs as streams. One file for each wire form; [`follow`] reads the log for all of them.

pub mod custom;
pub mod follow;
pub mod sse;
