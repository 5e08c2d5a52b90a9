//! What leaves a host for its operator: traces over OTLP and metrics for Prometheus.
//!
//! Both are projections of the event log, made when a run has ended or stands still. Nothing here
//! takes part in a run. The engine only notifies an observer, which returns at once; workers behind
//! bounded queues do the rest. What finds no room in a queue is counted and dropped.
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
