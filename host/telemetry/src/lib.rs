//! Telemetry for operators: traces over OTLP and metrics for Prometheus.
//!
//! Both are projections of the event log that are made when a run has ended or was interrupted.
//! Neither affects a run: the engine notifies an observer, which returns immediately, and workers
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

pub mod config;
pub mod error;
mod export;
pub mod metrics;
mod otlp;
pub mod run_log;
pub mod telemetry;

pub use config::{OtlpConfig, TelemetryConfig};
pub use error::ConfigError;
pub use telemetry::Telemetry;
