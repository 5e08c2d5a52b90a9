//! The app's own nodes of the graph.

pub(crate) mod begin;
