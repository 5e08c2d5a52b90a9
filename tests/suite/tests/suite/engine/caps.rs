//! Caps of threads, apps and tenants, which apply to no others.

mod blobs;
mod log;
mod questions;
mod tasks;
mod tenants;
