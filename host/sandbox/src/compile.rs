//! Where components are taken apart and compiled, and what that may cost.
//!
//! A file of some hundred kilobytes can keep a compiler busy for minutes and make it take a
//! gigabyte. So the binary compiles in a process of its own, which the system ends at its limits.
//! What a library has no binary for, such as tests of this crate, compiles in its own process.

mod process;
pub mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use wasmtime::Engine;

use crate::load::Fault;
use crate::load::fault;
use crate::load::prepare::{Prepared, prepare};

/// CPU time of all threads for one component. Python's, with 18 MiB, need some 15 seconds; a debug
/// build of the host needs twice that.
pub const CPU: Duration = Duration::from_mins(2);

/// The same on the wall, which also bounds a compiler that waits. A loaded machine needs more than
/// the CPU time.
pub const WALL: Duration = Duration::from_mins(5);

/// Address space of the process. Python's components need some 2 GiB of it.
pub const MEMORY_BYTES: u64 = 4 << 30;

/// Components that are compiled at once, whatever the machine has: each may need its whole memory.
const AT_ONCE: usize = 4;

/// What compiling one component may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// CPU time of all threads, in whole seconds.
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Address space.
    pub memory_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { cpu: CPU, wall: WALL, memory_bytes: MEMORY_BYTES }
    }
}

/// Where components are compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process, where nothing bounds it.
    #[default]
    InProcess,
    /// In a process of its own.
    Process {
        /// The program. It must call [`worker::work`] when it is started with these arguments.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// What it may cost.
        limits: CompileLimits,
    },
}

/// Compiles components, some at once.
pub(crate) struct Compilers {
    compiler: Compiler,
    places: Arc<Semaphore>,
}

impl Compilers {
    pub(crate) fn new(compiler: Compiler) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { compiler, places: Arc::new(Semaphore::new(cores.min(AT_ONCE))) }
    }

    /// Takes a component apart and compiles it, when it is its turn.
    pub(crate) async fn compile(&self, engine: &Engine, bytes: Bytes) -> Result<Prepared, Fault> {
        let _place = self.places.acquire().await.map_err(|_| fault::invalid("the host stops"))?;
        match &self.compiler {
            Compiler::InProcess => {
                let engine = engine.clone();
                let work = tokio::task::spawn_blocking(move || prepare(&engine, &bytes));
                work.await.unwrap_or_else(|error| Err(fault::panicked(&error)))
            }
            Compiler::Process { program, arguments, limits } => {
                process::compile(program, arguments, limits, bytes).await
            }
        }
    }
}
