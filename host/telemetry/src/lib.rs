//! What leaves a host for its operator: traces over OTLP and metrics for Prometheus.
//!
//! Both are projections of the event log, made when a run has ended or stands still. Nothing here
//! takes part in a run: an observer is told in a moment that it happened, all else is done by
//! workers behind bounded queues, and what finds no room is counted and dropped.
//!
//! # Layout
//!
//! * [`config`]: the settings; [`telemetry`]: [`Telemetry`], the observer, its queue and worker.
//! * [`source`]: what a run left in the store, of which [`wattle_project::spans`] makes spans.
//! * `otlp`: spans in the form of OTLP.
//! * `export`: the worker that sends spans; `export/send`: one request with its retries.
//! * [`metrics`]: counters and their text form; `metrics/measure`: what a run adds to them.

pub mod config;
pub mod error;
mod export;
pub mod metrics;
mod otlp;
pub mod source;
pub mod telemetry;

pub use config::{OtlpConfig, TelemetryConfig};
pub use error::ConfigError;
pub use telemetry::Telemetry;
