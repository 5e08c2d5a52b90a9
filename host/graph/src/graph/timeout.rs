//! How long one attempt of a node may take.

use crate::definition::{Refresh, Span, TimeoutDef};

/// How long one attempt of a node may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeout {
    /// In all, in milliseconds; `None` for the host's own limit.
    pub run_ms: Option<u64>,
    /// Without a sign of life, in milliseconds; `None` for any time.
    pub idle_ms: Option<u64>,
    /// What is a sign of life.
    pub refresh: Refresh,
}

impl From<&TimeoutDef> for Timeout {
    fn from(def: &TimeoutDef) -> Self {
        match def {
            TimeoutDef::Run(span) => Self { run_ms: Some(span.as_ms()), ..Self::default() },
            TimeoutDef::Both(both) => Self {
                run_ms: both.run.map(Span::as_ms),
                idle_ms: both.idle.map(Span::as_ms),
                refresh: both.refresh,
            },
        }
    }
}
