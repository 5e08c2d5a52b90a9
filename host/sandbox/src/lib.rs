//! WebAssembly sandbox of Wattle: wasmtime behind the engine's ports `Sandbox` and `Plugin`.
//!
//! # Layout
//!
//! * [`config`]: settings of the sandbox; `engine`: setup of wasmtime, and its tickers.
//! * [`sandbox`]: the adapter of the port `Sandbox`; `plugin`: the adapter of the port `Plugin`;
//!   `refused`: components whose compilation failed, which are not compiled again;
//!   `running_loads`: loads that are under way, at most one for each component.
//! * `engines`: the engines with their linkers, one for each ABI of components.
//! * `load`: from untrusted bytes to compiled code with a description; [`compile`]: the process and
//!   the limits of compilation; `code_cache`: compiled code on disk.
//! * `host_state`: the data of a store for one call; `cpu_meter` and `memory_meter`: CPU time and
//!   memory of a guest.
//! * `guest_pool`: the memory and the places of all guests, of which each app has a share;
//!   [`machine_memory`]: the memory of the machine.
//! * `export`: one guest call in a fresh instance; `guest_error`: the errors of calls;
//!   `guest_output`: what a guest wrote before it failed; `sanitize`: sanitizes failures of guests.
//! * `typed`: components whose functions are tools by their WIT types.
//! * `import`: the interfaces that guests import, one per file, each a thin layer over the gate.
//! * `concurrent_calls`: host calls that run while their guest continues.
//! * `wasi`: the WASI context of components that import WASI, which is empty unless a typed
//!   component has grants for folders or environment variables; `wasi::constants`: clocks and
//!   random numbers of guests without a gate; `wasi::http`: requests of `wasi:http` as calls of the
//!   gate.
//! * [`parse`]: converts requests of `wasi:http` without a guest, for tests.
//! * `bindings`: the bindings that wasmtime generates from `wit/wattle`.
//!
//! # Invariants
//!
//! * A guest reaches the host only through its gate. Without a gate every import of `wattle:plugin`
//!   but `log` traps, and WASI returns constants.
//! * A wasmtime store serves one guest call. After a trap, an exceeded limit or a dropped future,
//!   nothing of the store remains.
//! * All guests of a host together never hold more memory than
//!   `SandboxConfig::guests_memory_bytes`, and the code of all loaded components together never
//!   takes more than `SandboxConfig::code_bytes`.
//! * Loading never panics the host and leaves no compiling process behind, whatever the bytes are.

mod bindings;
mod code_cache;
pub mod compile;
mod compiled;
mod concurrent_calls;
pub mod config;
mod cpu_meter;
mod engine;
mod engines;
pub mod error;
mod export;
mod guest_error;
mod guest_output;
mod guest_pool;
mod handles;
mod host_state;
mod import;
mod import_error;
mod json;
mod load;
pub mod machine_memory;
mod memory_meter;
pub mod parse;
mod plugin;
mod refused;
mod running_loads;
pub mod sandbox;
mod sanitize;
mod typed;
mod wasi;

pub use config::{CodeCacheConfig, CompileLimits, Compiler, SandboxConfig};
pub use error::Error;
pub use sandbox::{WasmSandbox, WasmSandbox as Sandbox};
