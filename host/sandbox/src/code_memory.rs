//! The memory of the compiled code of all loaded components.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wattle_run::ports::sandbox::CODE_MEMORY;

use crate::load::Rejection;

/// The memory of compiled code. Clones share the memory.
#[derive(Clone, Debug)]
pub(crate) struct CodeMemory {
    /// Maximum bytes.
    most: u64,
    used: Arc<AtomicU64>,
}

/// The memory of the code of one component. It is free again when the value is dropped.
#[derive(Debug)]
pub(crate) struct CodeRoom {
    memory: CodeMemory,
    bytes: u64,
}

impl CodeMemory {
    /// Creates a memory of `most` bytes.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, used: Arc::default() }
    }

    /// Reserves memory for code before the code is read.
    ///
    /// # Errors
    ///
    /// A rejection with the code [`CODE_MEMORY`].
    pub(crate) fn reserve(&self, bytes: u64) -> Result<CodeRoom, Rejection> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(CodeRoom { memory: self.clone(), bytes }),
            Err(used) => Err(full(bytes, used, self.most)),
        }
    }
}

impl Drop for CodeRoom {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn full(bytes: u64, used: u64, most: u64) -> Rejection {
    let message = format!(
        "its compiled code has {bytes} bytes, and that of the loaded components has {used} bytes \
         of the {most} bytes that `limits.code_memory` allows"
    );
    let hint = if bytes > most {
        "raise `limits.code_memory` in wattle.toml, or make the plugin smaller"
    } else {
        "raise `limits.code_memory` in wattle.toml, or remove plugins and apps that are not \
         needed; then restart the host, or copy the file again"
    };
    Rejection::new(CODE_MEMORY, &message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_free_again_when_the_code_is_dropped() {
        let memory = CodeMemory::new(100);
        let first = memory.reserve(60).unwrap();
        let _second = memory.reserve(40).unwrap();
        let refused = memory.reserve(1).unwrap_err();
        assert_eq!(refused.code, CODE_MEMORY);
        assert!(refused.message.contains("has 100 bytes of the 100 bytes"), "{}", refused.message);
        assert!(refused.hint.contains("remove plugins"), "{}", refused.hint);
        drop(first);
        assert!(memory.reserve(61).is_err());
        assert!(memory.reserve(60).is_ok());
        assert!(memory.reserve(101).unwrap_err().hint.contains("make the plugin smaller"));
        assert!(memory.reserve(u64::MAX).is_err());
    }
}
