//! Telemetry for operators: traces over OTLP, metrics for Prometheus, and statistics over time.
//!
//! All are projections of the event log that are made when a run has ended or was interrupted.
//! None affects a run: the engine notifies an observer, which returns immediately, and workers
//! behind bounded queues do the rest. What does not fit into a queue is counted and dropped.
//!
//! # Layout
//!
//! * [`config`]: the settings; [`telemetry`]: [`Telemetry`], the observer with its queue and
//!   worker.
//! * [`run_log`]: reads the log of a run, from which [`wattle_project::spans`] makes spans.
//! * `otlp`: converts spans to OTLP.
//! * `export`: the worker that sends spans; `export/send`: one request with its retries.
//! * [`metrics`]: the metrics and their text format; `metrics/run_metrics`: records a run.
//! * [`statistics`]: counts by minute, hour and day, which the hosts of a store keep together.

pub mod config;
pub mod error;
mod export;
pub mod metrics;
mod otlp;
pub mod run_log;
pub mod statistics;
pub mod telemetry;

pub use config::{OtlpConfig, TelemetryConfig};
pub use error::ConfigError;
pub use statistics::RunStatistics;
pub use telemetry::Telemetry;
