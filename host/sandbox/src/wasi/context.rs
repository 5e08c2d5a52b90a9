//! Contexts of WASI for guests.

use std::sync::Arc;

use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::{FolderAccess, FolderRule, Grants};

use crate::guest_output::{GuestOutput, StandardStream};
use crate::import_error::TrapReason;
use crate::wasi::log_stream::LogStream;

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
