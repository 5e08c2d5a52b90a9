//! What a thread, an app and a tenant may take: who takes more is refused, and nobody else.

mod blobs;
mod log;
mod questions;
mod tasks;
mod tenants;
