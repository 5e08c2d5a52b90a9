//! Caps of runs, threads, apps and tenants, which apply to no others, and of what a guest logs.

mod blobs;
mod context;
mod log;
mod messages;
mod questions;
mod tasks;
mod tenants;
