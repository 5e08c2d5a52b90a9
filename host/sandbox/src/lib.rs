//! WebAssembly sandbox of Wattle: wasmtime behind the engine's ports `Sandbox` and `Plugin`.
//!
//! # Layout
//!
//! * [`config`]: what the operator may set; `engine`: how wasmtime is set up, and its ticker.
//! * [`sandbox`]: the adapter of the port `Sandbox`; `plugin`: that of the port `Plugin`.
//! * `load`: from hostile bytes to compiled code with a description; [`compile`]: in which process
//!   and within which limits; `cache`: compiled code on disk.
//! * `guest`: what a store holds for one call; `cpu` and `meter`: what the guest may use.
//! * `call`: one fresh instance, one call, one outcome; `ended`: why a call has none; `border`: what
//!   a guest says of its failure, cleaned.
//! * `import`: the interfaces that guests import, one a file, each a thin layer over the gate.
//! * `wasi`: the empty WASI context of foreign components.
//! * `bindings`: what wasmtime generates from `wit/wattle`.
//!
//! # Invariants
//!
//! * A guest sees the world only through its gate. Without a gate every import traps.
//! * A store serves one call. After a trap, a limit or a dropped future nothing of it is left.
//! * No bytes, however hostile, make loading panic the host or leave something behind.

mod bindings;
mod border;
mod cache;
mod call;
mod code;
pub mod compile;
pub mod config;
mod cpu;
mod ended;
mod engine;
pub mod error;
mod guest;
mod halt;
mod import;
mod json;
mod load;
mod meter;
mod plugin;
pub mod sandbox;
mod wasi;

pub use config::{CodeCache, CompileLimits, Compiler, SandboxConfig};
pub use error::Error;
pub use sandbox::{WasmSandbox, WasmSandbox as Sandbox};
