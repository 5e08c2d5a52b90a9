//! Configuration of the sandbox.

use std::path::PathBuf;

use wattle_run::limit::{GUESTS_MEMORY_BYTES, LEAST_GUESTS_MEMORY_BYTES, MACHINE_MEMORY_DIVISOR};

pub use crate::compile::{CompileLimits, Compiler};
use crate::machine_memory;

/// Default maximum number of live guests. A suspended guest takes about 60 KiB, so this number of
/// suspended guests takes about 60 MiB. Their memory mappings are far below the kernel's limit.
pub const DEFAULT_MAX_INSTANCES: u32 = 1_000;

/// Default maximum memory of the compiled code of all loaded components, in bytes. Code is some
/// four times as large as its component: a component of Rust takes a few MiB, one that contains an
/// interpreter more than 100 MiB. So hundreds of the former and some of the latter fit. The code of
/// the largest component takes half.
pub const DEFAULT_CODE_BYTES: u64 = 1 << 30;

/// Minimum of [`SandboxConfig::code_bytes`] that an operator can set. Most components have less
/// code.
pub const LEAST_CODE_BYTES: u64 = 64 << 20;

/// Divisor of the memory of the machine. The quotient bounds the default of
/// [`SandboxConfig::code_bytes`]. Guests have half, and the host needs the rest.
const CODE_MEMORY_DIVISOR: u64 = 4;

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
    /// Maximum memory of all guests together, in bytes, at least [`LEAST_GUESTS_MEMORY_BYTES`].
    /// Default: [`GUESTS_MEMORY_BYTES`], or half of the memory that the process may use if that is
    /// less.
    pub guests_memory_bytes: u64,
    /// Maximum memory of the compiled code of all loaded components together, in bytes. A component
    /// whose code does not fit is not loaded. Default: [`DEFAULT_CODE_BYTES`], or a quarter of the
    /// memory that the process may use if that is less, but at least [`LEAST_CODE_BYTES`].
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
        let machine_bytes = machine_memory::usable_bytes();
        Self {
            cache: None,
            compiler: Compiler::default(),
            max_instances: DEFAULT_MAX_INSTANCES,
            guests_memory_bytes: guests_memory_bytes(machine_bytes),
            code_bytes: code_bytes(machine_bytes),
        }
    }
}

/// Returns the default memory limit for all guests together, in bytes. `machine_bytes` is the
/// memory that this process may use; `None` if the system does not report it.
fn guests_memory_bytes(machine_bytes: Option<u64>) -> u64 {
    let part = machine_bytes.map(|machine| machine / MACHINE_MEMORY_DIVISOR);
    part.map_or(GUESTS_MEMORY_BYTES, |part| {
        part.clamp(LEAST_GUESTS_MEMORY_BYTES, GUESTS_MEMORY_BYTES)
    })
}

/// Returns the default memory limit for compiled code, in bytes. `machine_bytes` is the memory that
/// this process may use; `None` if the system does not report it.
fn code_bytes(machine_bytes: Option<u64>) -> u64 {
    let part = machine_bytes.map(|machine| machine / CODE_MEMORY_DIVISOR);
    part.map_or(DEFAULT_CODE_BYTES, |part| part.clamp(LEAST_CODE_BYTES, DEFAULT_CODE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_takes_at_most_a_quarter_of_a_small_machine() {
        assert_eq!(code_bytes(None), DEFAULT_CODE_BYTES);
        assert_eq!(code_bytes(Some(64 << 30)), DEFAULT_CODE_BYTES);
        assert_eq!(code_bytes(Some(2 << 30)), 512 << 20);
        assert_eq!(code_bytes(Some(1)), LEAST_CODE_BYTES);
    }

    #[test]
    fn guests_take_at_most_half_of_a_small_machine() {
        assert_eq!(guests_memory_bytes(None), GUESTS_MEMORY_BYTES);
        assert_eq!(guests_memory_bytes(Some(64 << 30)), GUESTS_MEMORY_BYTES);
        assert_eq!(guests_memory_bytes(Some(1 << 30)), 512 << 20);
        assert_eq!(guests_memory_bytes(Some(1)), LEAST_GUESTS_MEMORY_BYTES);
    }
}
