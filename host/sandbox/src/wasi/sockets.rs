//! `wasi:sockets` for guests, which have no sockets.
//!
//! Three functions create a socket or look up a name. Each of them returns `access-denied`, so a
//! guest never has a socket, and none of the functions of a socket is ever called. The
//! implementation of wasmtime-wasi denies lookups with `permanent-resolver-failure`, which standard
//! libraries report as a failure of the name server.

use std::mem;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::ResolveAddressStream;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddressFamily};
use wasmtime_wasi::p2::{Network, TcpSocket, UdpSocket};
use wattle_run::hostcall::log::LogMessage;

use crate::guest_output::StandardStream;
use crate::host_state::HostState;
use crate::wasi::replace;

/// The interfaces with the functions, in the version that wasmtime-wasi defines.
const LOOKUP: &str = "wasi:sockets/ip-name-lookup@0.2.12";
const CREATE_TCP: &str = "wasi:sockets/tcp-create-socket@0.2.12";
const CREATE_UDP: &str = "wasi:sockets/udp-create-socket@0.2.12";

/// The warning about the first denial in a guest call.
const WARNING: &str = "the plugin has no sockets, so `wasi:sockets` denies access: send HTTP \
                       requests by `wattle:plugin/http` or `wasi:http`, with the grant `http`";

type Guest<'a> = StoreContextMut<'a, HostState>;

/// Replaces the functions that create sockets and look up names by functions that deny access.
pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    replace(linker, CREATE_TCP, "create-tcp-socket", |functions, item| {
        functions.func_wrap(item, |guest: Guest<'_>, (_,): (IpAddressFamily,)| {
            Ok((deny::<TcpSocket>(guest),))
        })
    })?;
    replace(linker, CREATE_UDP, "create-udp-socket", |functions, item| {
        functions.func_wrap(item, |guest: Guest<'_>, (_,): (IpAddressFamily,)| {
            Ok((deny::<UdpSocket>(guest),))
        })
    })?;
    replace(linker, LOOKUP, "resolve-addresses", |functions, item| {
        functions.func_wrap(item, |guest: Guest<'_>, (_, _): (Resource<Network>, String)| {
            Ok((deny::<ResolveAddressStream>(guest),))
        })
    })
}

/// Returns the error of a denied call.
fn deny<T: 'static>(mut guest: Guest<'_>) -> Result<Resource<T>, ErrorCode> {
    guest.data_mut().warn_about_sockets();
    Err(ErrorCode::AccessDenied)
}

impl HostState {
    /// Logs [`WARNING`] once: a guest that repeats an attempt would otherwise fill the log. Without
    /// a gate, the message is kept for the failure of the guest.
    fn warn_about_sockets(&mut self) {
        if mem::replace(&mut self.is_socket_denial_logged, true) {
            return;
        }
        if let Ok(gate) = self.gate("wasi:sockets") {
            gate.push_log(LogMessage::new("warn", WARNING));
        } else {
            self.output.write(StandardStream::Err, WARNING.as_bytes());
            self.output.write(StandardStream::Err, b"\n");
        }
    }
}
