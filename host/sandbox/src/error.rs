//! Errors of setting up the sandbox. The errors of one plugin are `LoadError` and `GuestError`.

use std::path::PathBuf;

/// Error of setting up the sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// wasmtime rejects the configuration, or the address space is too small for `max_instances`
    /// guests.
    #[error("cannot set up the WebAssembly engine for {max_instances} instances: {message}")]
    Engine {
        /// Number of instances that the engine was set up for.
        max_instances: u32,
        /// Message of wasmtime.
        message: String,
    },
    /// The interfaces of the host cannot be linked.
    #[error("cannot link the interfaces of the host: {message}")]
    Link {
        /// Message of wasmtime.
        message: String,
    },
    /// The thread that interrupts guests cannot be started.
    #[error("cannot start the thread that interrupts guests")]
    Ticker(#[source] std::io::Error),
    /// The directory for compiled code cannot be used.
    #[error("cannot use `{path}` for compiled code; set `cache_dir` to a directory of your own")]
    CacheDir {
        /// The directory.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
}
