//! Nodes of the graph that are the app's own.

pub(crate) mod begin;
