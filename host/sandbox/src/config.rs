//! What the operator may set about the sandbox.

use std::path::PathBuf;

/// Instances alive at once without a setting: a suspended guest costs about 60 KiB, so this is
/// some 60 MiB when all are in use, and far below the kernel's limit on memory mappings.
pub const MAX_INSTANCES: u32 = 1_000;

/// Settings of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Where compiled code is kept; without it every start compiles anew. The directory must
    /// belong to the host alone: what lies in it is run as native code.
    pub cache_dir: Option<PathBuf>,
    /// Guests alive at once, waiting ones included. Capped by what the kernel's limit on memory
    /// mappings allows.
    pub max_instances: u32,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { cache_dir: None, max_instances: MAX_INSTANCES }
    }
}
