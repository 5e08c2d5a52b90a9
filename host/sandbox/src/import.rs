//! The interfaces that guests import, one per file. Each converts WIT types to engine types, makes
//! one call of the gate, and converts the result.

mod batch;
pub(crate) mod blob;
pub(crate) mod clock;
mod completion;
pub(crate) mod emit;
pub(crate) mod http;
pub(crate) mod interrupt;
pub(crate) mod llm;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod message;
pub(crate) mod random;
mod request;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod sql;
pub(crate) mod tenants;
pub(crate) mod tools;
pub(crate) mod types;

use wasmtime::component::{HasSelf, Linker};

use crate::bindings::wattle::plugin as wit;
use crate::host_state::HostState;

/// Interfaces of `wattle:plugin` that a guest may import. `types` has no functions. `tool` is an
/// interface that plugins export. `tools` uses types of `tool`, and some toolchains import the
/// functions of `tool` together with its types.
pub(crate) const INTERFACES: &[&str] = &[
    "types",
    "llm",
    "http",
    "sql",
    "clock",
    "random",
    "interrupt",
    "tool",
    "tools",
    "memory",
    "blob",
    "emit",
    "log",
    "settings",
    "tenants",
    "runs",
];

/// Defines all interfaces of `wattle:plugin`. An interface without functions needs no definition.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    type Host = HasSelf<HostState>;
    wit::llm::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::http::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::sql::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::clock::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::random::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::interrupt::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::tool::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::tools::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::memory::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::blob::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::emit::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::log::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::settings::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::tenants::add_to_linker::<_, Host>(linker, |guest| guest)?;
    wit::runs::add_to_linker::<_, Host>(linker, |guest| guest)
}
