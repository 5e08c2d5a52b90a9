//! Why the sandbox cannot be set up. Faults of single plugins are `LoadError` and `Ended`.

use std::path::PathBuf;

/// Why the sandbox cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// wasmtime refuses the configuration, or the address space is too small for it.
    #[error("cannot set up the WebAssembly engine for {max_instances} instances: {message}")]
    Engine {
        /// How many instances it was set up for.
        max_instances: u32,
        /// What wasmtime says.
        message: String,
    },
    /// The host's interfaces do not fit together.
    #[error("cannot link the interfaces of the host: {message}")]
    Link {
        /// What wasmtime says.
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
        /// Why.
        #[source]
        source: std::io::Error,
    },
}
