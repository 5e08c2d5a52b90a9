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
use wattle_run::ports::sandbox::GuestError;

use crate::compiled::CompiledComponent;
use crate::guest_error::{self, Callee};
use crate::host_state::HostState;

/// A guest call, ready to start.
pub(crate) struct GuestCall<'a> {
    pub(crate) code: &'a CompiledComponent,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) limits: &'a Limits,
    pub(crate) callee: Callee<'a>,
}

/// A fresh instance and its store. The end of the call drops both.
pub(crate) struct GuestInstance<'a> {
    pub(crate) store: Store<HostState>,
    pub(crate) instance: Instance,
    limits: &'a Limits,
    callee: Callee<'a>,
}

impl<'a> GuestCall<'a> {
    /// Instantiates the code.
    pub(crate) async fn instantiate(self) -> Result<GuestInstance<'a>, GuestError> {
        let Self { code, gate, limits, callee } = self;
        let mut store = HostState::new_store(code.pre.engine(), gate, limits);
        match code.pre.instantiate_async(&mut store).await {
            Ok(instance) => Ok(GuestInstance { store, instance, limits, callee }),
            Err(error) => {
                Err(guest_error::from_wasmtime_error(error, store.data(), limits, callee))
            }
        }
    }
}

impl GuestInstance<'_> {
    /// Returns the result of the guest, or the error that ended it. Drops the instance and its
    /// store.
    pub(crate) fn finish<T>(self, done: wasmtime::Result<T>) -> Result<T, GuestError> {
        done.map_err(|error| {
            guest_error::from_wasmtime_error(error, self.store.data(), self.limits, self.callee)
        })
    }
}

/// Returns the error of a component that does not export the interface that the call needs.
pub(crate) fn missing_export(callee: Callee<'_>, interface: &str) -> GuestError {
    GuestError::Host(Failure::new(
        code::INVALID,
        format!("cannot run {callee}: the plugin does not export `wattle:plugin/{interface}`"),
    ))
}

/// Returns the error of a guest whose result violates the contract.
pub(crate) fn invalid_result(
    callee: Callee<'_>,
    what: &str,
    error: &dyn std::fmt::Display,
) -> GuestError {
    GuestError::Failure(Failure::new(code::INVALID, format!("{callee} returned {what}: {error}")))
}

/// Checks the size of a result against the output limit.
pub(crate) fn check_output_size(
    bytes: usize,
    limits: &Limits,
    callee: Callee<'_>,
) -> Result<(), GuestError> {
    if bytes as u64 <= limits.output_bytes {
        return Ok(());
    }
    Err(GuestError::Limit(guest_error::limit_exceeded(
        callee,
        "output",
        limits.output_bytes,
        "bytes of output",
    )))
}
