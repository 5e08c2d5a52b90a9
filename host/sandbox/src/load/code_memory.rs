//! Memory of compiled code, which all loaded components share.

use wattle_run::memory_pool::{MemoryPool, Occupied};

use crate::load::rejection::{self, Rejection};

/// Reserves memory for compiled code before it is read.
pub(crate) fn reserve(memory: &MemoryPool, bytes: u64) -> Result<Occupied, Rejection> {
    memory.reserve(bytes).map_err(|full| rejection::no_code_memory(bytes, full))
}
