//! Fuzz targets: functions that pass untrusted bytes to a parser of the host and check properties
//! of the result that hold for any input.
//!
//! A target panics if a property does not hold. Two programs call targets: the tests of this
//! package, with the seeds under `corpus`, and the binary `wattle-fuzz`, with inputs that libFuzzer
//! generates. `cargo xtask fuzz` builds and starts the binary.
//!
//! # Layout
//!
//! * [`targets`]: one module for each target, with its properties.
//! * `guest`: components that return bytes of the input. `world`: ports without services.

mod guest;
pub mod targets;
mod world;

use std::fmt;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// A function that accepts any bytes and panics if a property does not hold.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target, and of its folder under `corpus`.
    pub name: &'static str,
    /// The function of the target.
    pub run: fn(&[u8]),
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.name).finish()
    }
}

/// All targets.
pub const TARGETS: [Target; 32] = [
    Target { name: "app", run: targets::app::run },
    Target { name: "blob", run: targets::blob::run },
    Target { name: "cel", run: targets::cel::run },
    Target { name: "code", run: targets::code::run },
    Target { name: "component", run: targets::component::run },
    Target { name: "events", run: targets::events::run },
    Target { name: "export", run: targets::export::run },
    Target { name: "form", run: targets::form::run },
    Target { name: "frame", run: targets::frame::run },
    Target { name: "graph", run: targets::graph::run },
    Target { name: "guard", run: targets::guard::run },
    Target { name: "history", run: targets::history::run },
    Target { name: "kept", run: targets::kept::run },
    Target { name: "mcp", run: targets::mcp::run },
    Target { name: "memory", run: targets::memory::run },
    Target { name: "native", run: targets::native::run },
    Target { name: "provider", run: targets::provider::run },
    Target { name: "request", run: targets::request::run },
    Target { name: "schema", run: targets::schema::run },
    Target { name: "script", run: targets::script::run },
    Target { name: "session", run: targets::session::run },
    Target { name: "session_http", run: targets::session_http::run },
    Target { name: "sql", run: targets::sql::run },
    Target { name: "state", run: targets::state::run },
    Target { name: "store", run: targets::store::run },
    Target { name: "stream", run: targets::stream::run },
    Target { name: "structured", run: targets::structured::run },
    Target { name: "token", run: targets::token::run },
    Target { name: "typed", run: targets::typed::run },
    Target { name: "url", run: targets::url::run },
    Target { name: "wasi_http", run: targets::wasi_http::run },
    Target { name: "wit", run: targets::wit::run },
];

/// Returns the target with a name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Runs a future to completion. All targets share one runtime, so that an execution starts no
/// threads.
fn wait<F: Future>(future: F) -> F::Output {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let make = || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("the runtime starts")
    };
    RUNTIME.get_or_init(make).block_on(future)
}
