//! Caps of runs, threads, apps and tenants, which apply to no others.

mod blobs;
mod context;
mod log;
mod questions;
mod tasks;
mod tenants;
