//! One guest call: a fresh store and instance, one exported function, one outcome.

pub(crate) mod node;
pub(crate) mod reduce;
pub(crate) mod tool;
pub(crate) mod web;
pub(crate) mod write;

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::Instance;
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::Ended;

use crate::code::Code;
use crate::ended::{self, Place};
use crate::guest::Guest;

/// A guest call, ready to start.
pub(crate) struct Call<'a> {
    pub(crate) code: &'a Code,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) limits: &'a Limits,
    pub(crate) place: Place<'a>,
}

/// A fresh instance and its store. The end of the call drops both.
pub(crate) struct Live<'a> {
    pub(crate) store: Store<Guest>,
    pub(crate) instance: Instance,
    limits: &'a Limits,
    place: Place<'a>,
}

impl<'a> Call<'a> {
    /// Instantiates the code.
    pub(crate) async fn start(self) -> Result<Live<'a>, Ended> {
        let Self { code, gate, limits, place } = self;
        let mut store = Guest::store(code.pre.engine(), gate, limits);
        match code.pre.instantiate_async(&mut store).await {
            Ok(instance) => Ok(Live { store, instance, limits, place }),
            Err(error) => Err(ended::explain(error, store.data(), limits, place)),
        }
    }
}

impl Live<'_> {
    /// Returns the result of the guest, or the error that ended it. Drops the instance and its
    /// store.
    pub(crate) fn settle<T>(self, done: wasmtime::Result<T>) -> Result<T, Ended> {
        done.map_err(|error| ended::explain(error, self.store.data(), self.limits, self.place))
    }
}

/// Returns the error of a component that does not export the interface that the call needs.
pub(crate) fn not_exported(place: Place<'_>, interface: &str) -> Ended {
    Ended::Host(Failure::new(
        code::INVALID,
        format!("cannot run {place}: the plugin does not export `wattle:plugin/{interface}`"),
    ))
}

/// Returns the error of a guest whose result violates the contract.
pub(crate) fn bad_answer(place: Place<'_>, what: &str, error: &dyn std::fmt::Display) -> Ended {
    Ended::Failure(Failure::new(code::INVALID, format!("{place} returned {what}: {error}")))
}

/// Checks the size of a result against the output limit.
pub(crate) fn within_output(bytes: usize, limits: &Limits, place: Place<'_>) -> Result<(), Ended> {
    if bytes as u64 <= limits.output_bytes {
        return Ok(());
    }
    Err(Ended::Limit(ended::over(place, "output", limits.output_bytes, "bytes of output")))
}
