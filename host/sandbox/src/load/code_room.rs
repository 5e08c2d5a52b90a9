//! The place of a component's compiled code: reserved memory, or else its file in the cache.

use wattle_run::memory_pool::{MemoryPool, Occupied};

use crate::code_cache::file::CacheFile;
use crate::load::code_memory;
use crate::load::prepare::{Outline, Prepared};
use crate::load::rejection::Rejection;

/// The memory that all compiled code shares, and the file of one component.
#[derive(Clone)]
pub(crate) struct CodeRoom {
    memory: MemoryPool,
    file: Option<CacheFile>,
}

/// A compiled component in memory.
pub(crate) struct Compiled {
    pub(crate) outline: Outline,
    /// Native code, in the format of wasmtime.
    pub(crate) code: Vec<u8>,
    /// The memory of the code.
    pub(crate) memory: Occupied,
}

impl CodeRoom {
    /// Creates the room of a component. Without a file, code that does not fit in memory is
    /// dropped.
    pub(crate) fn new(memory: MemoryPool, file: Option<CacheFile>) -> Self {
        Self { memory, file }
    }

    /// Reserves memory for the code before it is read.
    pub(crate) fn reserve(&self, code_bytes: u64) -> Result<Occupied, Rejection> {
        code_memory::reserve(&self.memory, code_bytes)
    }

    /// Returns the file of the component in the cache, if there is a cache.
    pub(crate) fn file(&self) -> Option<&CacheFile> {
        self.file.as_ref()
    }

    /// Reserves memory for code that this process has compiled. Code that does not fit is written
    /// to the cache, so that it is not compiled again when it does.
    pub(crate) fn keep(&self, prepared: Prepared) -> Result<Compiled, Rejection> {
        let Prepared { outline, code } = prepared;
        match self.reserve(code.len() as u64) {
            Ok(memory) => Ok(Compiled { outline, code, memory }),
            Err(rejection) => {
                self.put(&outline, &code);
                Err(rejection)
            }
        }
    }

    /// Writes code to the cache, if there is one.
    pub(crate) fn put(&self, outline: &Outline, code: &[u8]) {
        if let Some(file) = &self.file {
            file.put(outline, code);
        }
    }
}
