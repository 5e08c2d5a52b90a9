//! Compilation of components, within limits.
//!
//! A file of some hundred kilobytes can keep a compiler busy for minutes and make it use a gigabyte
//! of memory. The binary of the host therefore compiles in a separate process, which the system
//! ends at its limits. Programs without this binary, such as the tests of this crate, compile in
//! their own process.

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

/// Default CPU-time limit for compiling one component, over all threads. A component of Python,
/// with 18 MiB, needs some 15 seconds; a debug build of the host needs twice that.
pub const CPU: Duration = Duration::from_mins(2);

/// Default wall-time limit for compiling one component. It also ends a compilation that is blocked
/// and uses no CPU time. It exceeds the CPU-time limit, because a loaded machine needs more wall
/// time than CPU time.
pub const WALL: Duration = Duration::from_mins(5);

/// Default address space of the compiling process, in bytes. A component of Python needs some 2 GiB
/// of it.
pub const MEMORY_BYTES: u64 = 4 << 30;

/// Maximum number of concurrent compilations, even on a machine with more cores. Each may use its
/// whole memory limit.
const AT_ONCE: usize = 4;

/// Limits for the compilation of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// CPU time of all threads, in whole seconds, at least one.
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Address space, in bytes.
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
    /// In this process, without limits.
    #[default]
    InProcess,
    /// In a separate process.
    Process {
        /// The program. It must call [`worker::work`] when it is started with these arguments.
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
        /// Limits of the process.
        limits: CompileLimits,
    },
}

/// Compiles components, several of them concurrently.
pub(crate) struct Compilers {
    compiler: Compiler,
    places: Arc<Semaphore>,
}

impl Compilers {
    pub(crate) fn new(compiler: Compiler) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { compiler, places: Arc::new(Semaphore::new(cores.min(AT_ONCE))) }
    }

    /// Checks and compiles a component. Waits until a slot is free.
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
