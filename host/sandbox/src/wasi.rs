//! WASI for components that import it: a context, and `wasi:http` through the gate.
//!
//! Components get no arguments and no sockets, and no files and no environment either, unless the
//! operator grants a typed component some. Lines on stdout and stderr become log messages and count
//! as such; their end is kept for the failure of the guest. The gate supplies the wall clock, the
//! monotonic clock and random numbers, so a re-executed guest reads the same values. A `poll` on a
//! timer waits for real time, which the guest can observe only with the gate's clocks. A guest
//! without a gate reads constants, and its timers are ready at once.
//! Requests of `wasi:http` are host calls of the gate.

mod clocks;
pub(crate) mod constants;
pub(crate) mod http;
mod http_texts;
mod log_stream;
mod random;

use std::sync::Arc;

use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::{FolderAccess, FolderRule, Grants};

use crate::guest_output::{GuestOutput, StandardStream};
use crate::host_state::HostState;
use crate::import_error::TrapReason;
use crate::wasi::log_stream::LogStream;

/// The package that [`link_http`] defines.
pub(crate) const HTTP_PACKAGE: &str = "wasi:http";

/// Packages of WASI that components may import.
pub(crate) const PACKAGES: &[&str] = &[
    "wasi:cli",
    "wasi:clocks",
    "wasi:filesystem",
    HTTP_PACKAGE,
    "wasi:io",
    "wasi:random",
    "wasi:sockets",
];

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let (ctx, table) = self.wasi();
        WasiCtxView { ctx, table }
    }
}

impl WasiHttpView for HostState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let (http, table) = self.wasi_http();
        http.view(table)
    }
}

/// Defines WASI 0.2 without `wasi:http`. Clocks and random numbers are those of
/// [`HostState::wasi_source`].
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    type Host = HasSelf<HostState>;
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    bindings::clocks::wall_clock::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::clocks::monotonic_clock::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::random::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::insecure::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::insecure_seed::add_to_linker::<_, Host>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Defines `wasi:http`, which uses resources of the rest of WASI.
pub(crate) fn link_http(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    http_texts::limit(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Creates a context with nothing in it but two log streams.
pub(crate) fn empty_context(gate: Option<&Arc<Gate>>, output: &GuestOutput) -> WasiCtx {
    empty_builder(gate, output).build()
}

/// Creates a context with the environment and the folders of grants. What the guest reads in a
/// folder is in no journal, so only a call whose whole result is journaled may have one.
///
/// # Errors
///
/// The failure about a folder that cannot be opened.
pub(crate) fn granted_context(
    gate: Option<&Arc<Gate>>,
    output: &GuestOutput,
    grants: &Grants,
) -> Result<WasiCtx, Failure> {
    let mut builder = empty_builder(gate, output);
    for (name, value) in &grants.environment {
        builder.env(name, value);
    }
    for folder in &grants.folders {
        let permissions = match folder.access {
            FolderAccess::ReadOnly => FsPerms::ReadOnly,
            FolderAccess::ReadWrite => FsPerms::ReadWrite,
        };
        let opened = builder.preopened_dir(&folder.path, &folder.guest, permissions);
        opened.map_err(|error| folder_unavailable(folder, &error))?;
    }
    Ok(builder.build())
}

/// Returns the failure about a folder. The path on the host is for the operator only.
fn folder_unavailable(folder: &FolderRule, error: &dyn std::fmt::Display) -> Failure {
    let path = folder.path.display();
    tracing::warn!("the granted folder `{path}` cannot be opened: {error}");
    let message = format!(
        "the folder `{}` cannot be opened; the log of the host names its path and the reason",
        folder.guest
    );
    Failure::new(code::UNAVAILABLE, message).retryable()
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
