//! What the operator may set about the sandbox.

use std::path::PathBuf;

pub use crate::compile::{CompileLimits, Compiler};

/// Instances alive at once without a setting: a suspended guest costs about 60 KiB, so this is
/// some 60 MiB when all are in use, and far below the kernel's limit on memory mappings.
pub const MAX_INSTANCES: u32 = 1_000;

/// Settings of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Where compiled code is kept; without it every start compiles again.
    pub cache: Option<CodeCache>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Guests alive at once, waiting ones included. Capped by what the kernel's limit on memory
    /// mappings allows.
    pub max_instances: u32,
}

/// Bytes of the key of a cache.
pub const CACHE_KEY_BYTES: usize = 32;

/// Where compiled code is kept. What lies there is run as native code.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeCache {
    /// The directory, which should belong to the host alone.
    pub directory: PathBuf,
    /// A secret of the host. Code that was not written with it is not run, so writing the directory
    /// is not enough to run code in the host.
    pub key: [u8; CACHE_KEY_BYTES],
}

/// Does not show the key.
impl std::fmt::Debug for CodeCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CodeCache")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { cache: None, compiler: Compiler::default(), max_instances: MAX_INSTANCES }
    }
}
