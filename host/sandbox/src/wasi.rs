//! WASI for components that import it: a context, and `wasi:http` through the gate.
//!
//! Components get neither arguments nor sockets: an attempt to create a socket or to look up a name
//! returns `access-denied`. They get folders and environment variables only if they are typed
//! components and the operator grants these. Lines on stdout and stderr become log messages and
//! count as such. The last bytes of both streams are kept for the failure of the guest. The gate
//! supplies the wall clock, the monotonic clock and random numbers, so a re-executed guest reads
//! the same values. A `poll` on a timer waits for real time, which the guest can observe only with
//! the gate's clocks. A guest without a gate reads constants, and its timers are ready at once.
//! Requests of `wasi:http` are host calls of the gate.

mod clocks;
pub(crate) mod constants;
pub(crate) mod context;
pub(crate) mod folders;
pub(crate) mod http;
mod http_texts;
mod listing;
mod log_stream;
mod preopens;
mod random;
mod sockets;

use wasmtime::component::{HasSelf, Linker, LinkerInstance};
use wasmtime_wasi::p2::bindings;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

use crate::host_state::HostState;

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
/// [`HostState::wasi_source`], and folders those of [`HostState::give`].
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    type Host = HasSelf<HostState>;
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    linker.allow_shadowing(true);
    bindings::clocks::wall_clock::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::clocks::monotonic_clock::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::random::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::insecure::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::random::insecure_seed::add_to_linker::<_, Host>(linker, |guest| guest)?;
    bindings::filesystem::preopens::add_to_linker::<_, Host>(linker, |guest| guest)?;
    linker.allow_shadowing(false);
    listing::link(linker)?;
    sockets::link(linker)
}

/// Defines `wasi:http`, which uses resources of other WASI packages.
pub(crate) fn link_http(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)?;
    http_texts::limit(linker)
}

/// Replaces an item of an interface in a linker that allows no shadowing. Returns an error if the
/// linker has no such item. This happens after an update of wasmtime-wasi that raises the version
/// of the interface: without the error, guests would get the item of wasmtime-wasi.
fn replace(
    linker: &mut Linker<HostState>,
    interface: &str,
    item: &str,
    define: impl Fn(&mut LinkerInstance<'_, HostState>, &str) -> wasmtime::Result<()>,
) -> wasmtime::Result<()> {
    // Without shadowing, a linker accepts only items that it does not have.
    if define(&mut linker.instance(interface)?, item).is_ok() {
        wasmtime::bail!("`{interface}` has no `{item}` that can be replaced");
    }
    linker.allow_shadowing(true);
    define(&mut linker.instance(interface)?, item)?;
    linker.allow_shadowing(false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use wasmtime::StoreContextMut;

    use super::*;
    use crate::engine::{Abi, create_compile_engine};

    fn define(items: &mut LinkerInstance<'_, HostState>, item: &str) -> wasmtime::Result<()> {
        items.func_wrap(item, |_: StoreContextMut<'_, HostState>, (): ()| Ok(()))
    }

    #[test]
    fn wasi_link_replaces_only_items_that_the_linker_has() {
        let engine = create_compile_engine(Abi::Synchronous).unwrap();
        let mut linker = Linker::<HostState>::new(&engine);
        define(&mut linker.instance("a:b/c@0.2.1").unwrap(), "f").unwrap();
        for (interface, item, is_there) in
            [("a:b/c@0.2.1", "f", true), ("a:b/c@0.2.1", "g", false), ("a:b/c@0.2.0", "f", false)]
        {
            let replaced = replace(&mut linker, interface, item, define);
            assert_eq!(replaced.is_ok(), is_there, "{interface} {item}");
        }
    }
}
