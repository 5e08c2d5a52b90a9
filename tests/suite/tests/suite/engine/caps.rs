//! Caps of runs, threads, apps and tenants, which apply to no others, of what a guest logs, and
//! limits of graphs that operators set in the same place.

mod blobs;
mod context;
mod log;
mod memory;
mod messages;
mod questions;
mod state;
mod tasks;
mod tenants;
