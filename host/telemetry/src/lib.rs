//! What leaves a host for its operator: traces over OTLP and metrics for Prometheus.
//!
//! Both are projections of the event log, made when a run has ended or stands still. Nothing here
//! takes part in a run: an observer is told in a moment that it happened, all else is done by
//! workers behind bounded queues, and what finds no room is counted and dropped.
//!
//! # Layout
//!
//! * [`config`]: the settings; [`telemetry`]: [`Telemetry`], the observer, its queue and worker.
//! * [`source`]: what a run left in the store; `project`: that as spans.
//! * `project/attribute`, `project/call`, `project/content`, `project/ids`: what spans consist of.
//! * `export`: the worker that sends spans; `export/send`: one request with its retries.
//! * [`metrics`]: counters and their text form; `metrics/measure`: what a run adds to them.
//!
//! # Spans
//!
//! A run is a trace: the run is its root, tasks are its children, and host calls (model, tool,
//! HTTP, SQL) children of their task, or of the tool call inside of which they were made. All ids
//! follow from the log, so sending a trace again changes nothing. Attributes are those of the
//! OpenTelemetry conventions for generative AI, and those that Langfuse reads.

pub mod config;
pub mod error;
mod export;
pub mod metrics;
mod project;
pub mod source;
pub mod telemetry;

pub use config::{OtlpConfig, TelemetryConfig};
pub use error::ConfigError;
pub use telemetry::Telemetry;
