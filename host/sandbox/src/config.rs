//! Configuration of the sandbox.

use std::path::PathBuf;

use wattle_run::memory_budget::MemoryBudget;

pub use crate::compile::{CompileLimits, Compiler};
use crate::machine_memory;

/// Default maximum number of live guests. A suspended guest takes about 60 KiB, so this number of
/// suspended guests takes about 60 MiB. Their memory mappings are far below the kernel's limit.
pub const DEFAULT_MAX_INSTANCES: u32 = 1_000;

/// Settings of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Cache of compiled code. With `None`, components are compiled again at every start.
    pub cache: Option<CodeCacheConfig>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Maximum number of live guests, including guests that wait for a host call. The sandbox
    /// lowers this number if the kernel allows too few memory mappings for it.
    pub max_instances: u32,
    /// Maximum memory of all guests together, in bytes, at least
    /// [`LEAST_GUESTS_MEMORY_BYTES`](wattle_run::limit::LEAST_GUESTS_MEMORY_BYTES). Default: the
    /// part of guests in the [`MemoryBudget`] of the machine.
    pub guests_memory_bytes: u64,
    /// Maximum memory of the compiled code of all loaded components together, in bytes. A component
    /// whose code does not fit is not loaded. Code is some four times as large as its component: a
    /// component of Rust takes a few MiB, one that contains an interpreter some dozens. Default: the
    /// part of code in the [`MemoryBudget`] of the machine.
    pub code_bytes: u64,
}

/// Length of the key of a cache, in bytes.
pub const CACHE_KEY_BYTES: usize = 32;

/// A cache of compiled code. The host executes its content as native code.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeCacheConfig {
    /// The directory of the cached files. Only the host should write to it.
    pub directory: PathBuf,
    /// Secret of the host. The host does not execute code that was written without this key, so
    /// write access to the directory is not enough to run code in the host.
    pub key: [u8; CACHE_KEY_BYTES],
}

/// Omits the key.
impl std::fmt::Debug for CodeCacheConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CodeCacheConfig")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Default for SandboxConfig {
    fn default() -> Self {
        let budget = MemoryBudget::of_machine(machine_memory::usable_bytes());
        Self {
            cache: None,
            compiler: Compiler::default(),
            max_instances: DEFAULT_MAX_INSTANCES,
            guests_memory_bytes: budget.guests_bytes,
            code_bytes: budget.code_bytes,
        }
    }
}
