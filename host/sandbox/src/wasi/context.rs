//! Contexts of WASI for guests.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;

use crate::guest_output::{GuestOutput, StandardStream};
use crate::import_error::TrapReason;
use crate::wasi::log_stream::LogStream;

/// Creates a context that has only stdout and stderr, which are log streams.
pub(crate) fn empty_context(gate: Option<&Arc<Gate>>, output: &GuestOutput) -> WasiCtx {
    empty_builder(gate, output).build()
}

/// Creates a context that also has environment variables.
pub(crate) fn context_with(
    gate: Option<&Arc<Gate>>,
    output: &GuestOutput,
    environment: &BTreeMap<String, String>,
) -> WasiCtx {
    let mut builder = empty_builder(gate, output);
    for (name, value) in environment {
        builder.env(name, value);
    }
    builder.build()
}

fn empty_builder(gate: Option<&Arc<Gate>>, output: &GuestOutput) -> WasiCtxBuilder {
    let stream = |stream| LogStream::new(gate.cloned(), output.clone(), stream, into_trap);
    let mut builder = WasiCtx::builder();
    builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    builder.stdout(stream(StandardStream::Out)).stderr(stream(StandardStream::Err));
    builder
}

fn into_trap(unwind: Unwind) -> wasmtime::Error {
    TrapReason::Unwind(unwind).into()
}
