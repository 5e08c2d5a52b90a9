//! Limits of the texts that a request of `wasi:http` has beside its headers. The implementation of
//! `wasi:http` keeps methods and authorities of any length.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi_http::WasiHttpView as _;
use wasmtime_wasi_http::p2::bindings::http::types::{HostOutgoingRequest as _, Method};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

use crate::host_state::HostState;
use crate::wasi::replace;

/// The interface with requests, in the version that `wasmtime-wasi-http` defines.
const TYPES: &str = "wasi:http/types@0.2.12";

/// Maximum length of the method of a request, in bytes. A guest can hold a thousand requests
/// without sending them.
const MAX_METHOD_BYTES: usize = 64;

/// Maximum length of the authority of a request, in bytes. The name of a host has at most 253.
const MAX_AUTHORITY_BYTES: usize = 255;

/// Maximum length of the path of a request with its query, in bytes. The implementation of
/// `wasi:http` accepts 64 KiB.
const MAX_PATH_BYTES: usize = 8 << 10;

/// Replaces the functions that store a text of the guest in a request by functions that refuse
/// longer texts. Schemes already have a limit of 64 bytes.
pub(super) fn limit(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    type Guest<'a> = StoreContextMut<'a, HostState>;
    type Outgoing = Resource<HostOutgoingRequest>;
    replace(linker, TYPES, "[method]outgoing-request.set-method", |types, item| {
        types.func_wrap(item, |mut guest: Guest<'_>, (request, method): (Outgoing, Method)| {
            if matches!(&method, Method::Other(name) if name.len() > MAX_METHOD_BYTES) {
                return Ok((Err(()),));
            }
            Ok((guest.data_mut().http().set_method(request, method)?,))
        })
    })?;
    replace(linker, TYPES, "[method]outgoing-request.set-authority", |types, item| {
        types.func_wrap(
            item,
            |mut guest: Guest<'_>, (request, authority): (Outgoing, Option<String>)| {
                if is_longer(authority.as_deref(), MAX_AUTHORITY_BYTES) {
                    return Ok((Err(()),));
                }
                Ok((guest.data_mut().http().set_authority(request, authority)?,))
            },
        )
    })?;
    replace(linker, TYPES, "[method]outgoing-request.set-path-with-query", |types, item| {
        types.func_wrap(
            item,
            |mut guest: Guest<'_>, (request, path): (Outgoing, Option<String>)| {
                if is_longer(path.as_deref(), MAX_PATH_BYTES) {
                    return Ok((Err(()),));
                }
                Ok((guest.data_mut().http().set_path_with_query(request, path)?,))
            },
        )
    })
}

fn is_longer(text: Option<&str>, max_bytes: usize) -> bool {
    text.is_some_and(|text| text.len() > max_bytes)
}
