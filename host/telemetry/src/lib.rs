//! Telemetry for operators: traces over OTLP, metrics for Prometheus, and statistics over time.
//!
//! Traces, metrics and statistics are projections of the event log, which this crate computes when
//! a run has ended or was interrupted. Telemetry does not delay a run: the engine notifies an
//! observer, which returns immediately, and workers behind bounded queues do the rest. Runs and
//! spans that do not fit into a queue are dropped and counted.
//!
//! # Layout
//!
//! * [`config`]: the settings; [`telemetry`]: [`Telemetry`], the observer with its queue and
//!   worker.
//! * [`run_log`]: reads the log of a run, which [`wattle_project::spans`] converts to spans.
//! * `otlp`: converts spans to OTLP.
//! * `export`: the worker that sends spans; `export/send`: one request with its retries.
//! * [`metrics`]: the metrics and their text format; `metrics/run_metrics`: records the metrics of
//!   a run.
//! * [`statistics`]: counts by minute, hour and day, in documents that all hosts of a store share.

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
