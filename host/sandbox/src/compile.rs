//! Compilation of components, within limits.
//!
//! A file of some hundred kilobytes can keep a compiler busy for minutes and make it use a gigabyte
//! of memory. The binary of the host therefore compiles in a separate process, which the operating
//! system ends when it exceeds a limit. Programs without this binary, such as the tests of this
//! crate, compile in their own process.

mod process;
pub mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::load::Rejection;
use crate::load::code_room::{CodeRoom, Compiled};
use crate::load::prepare::prepare;
use crate::load::rejection;

/// CPU-time limit of a brief compilation. Most components need one or two seconds.
pub const BRIEF_CPU: Duration = Duration::from_secs(5);

/// Default CPU-time limit for compiling one component, over all threads. A Python component of 18
/// MiB needs about 15 seconds, and twice as long in a debug build of the host.
pub const DEFAULT_CPU: Duration = Duration::from_mins(2);

/// Default wall-time limit for compiling one component. This limit also ends a compilation that is
/// blocked and uses no CPU time. The default exceeds [`DEFAULT_CPU`], because a loaded machine
/// needs more wall time than CPU time.
pub const DEFAULT_WALL: Duration = Duration::from_mins(5);

/// Default address space of the compiling process, in bytes. A Python component needs about 2 GiB.
pub const DEFAULT_MEMORY_BYTES: u64 = 4 << 30;

/// Maximum number of concurrent compilations, even on a machine with more cores. Each compilation
/// may use memory up to its limit.
const MAX_CONCURRENT: usize = 4;

/// Minimum number of concurrent compilations, even on a machine with fewer cores. The host compiles
/// at most two slow components at a time, which leaves one slot for other components.
const MIN_CONCURRENT: usize = 3;

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
        Self { cpu: DEFAULT_CPU, wall: DEFAULT_WALL, memory_bytes: DEFAULT_MEMORY_BYTES }
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
        /// The program. It must call [`worker::run`] when it is started with these arguments.
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
        /// Limits of the process.
        limits: CompileLimits,
    },
}

/// The reason why a component was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompileError {
    /// The component is not a plugin, or exceeds a limit of size or memory.
    Refused(Rejection),
    /// The compilation takes more CPU time than the limit.
    OutOfTime(Rejection),
    /// The compiling process failed or took too long, or the code does not fit in the memory of
    /// compiled code, so another attempt may succeed.
    Failed(Rejection),
}

/// Compiles components, several of them concurrently.
pub(crate) struct CompilerPool {
    compiler: Compiler,
    slots: Arc<Semaphore>,
}

impl CompilerPool {
    pub(crate) fn new(compiler: Compiler) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let slots = cores.clamp(MIN_CONCURRENT, MAX_CONCURRENT);
        Self { compiler, slots: Arc::new(Semaphore::new(slots)) }
    }

    /// Checks and compiles a component. Waits until a slot is free. Code of another process is read
    /// into memory only after this memory is reserved.
    pub(crate) async fn compile(
        &self,
        bytes: Bytes,
        room: &CodeRoom,
    ) -> Result<Compiled, CompileError> {
        let _slot = self.slot().await?;
        match &self.compiler {
            Compiler::InProcess => {
                let room = room.clone();
                let work = tokio::task::spawn_blocking(move || {
                    let prepared = prepare(&bytes).map_err(CompileError::Refused)?;
                    room.keep(prepared).map_err(CompileError::Failed)
                });
                work.await
                    .unwrap_or_else(|error| Err(CompileError::Refused(rejection::panicked(&error))))
            }
            Compiler::Process { program, arguments, limits } => {
                process::compile(program, arguments, limits, bytes, room).await
            }
        }
    }

    /// Checks and compiles a component. Returns `None` if this takes more CPU time than
    /// [`BRIEF_CPU`] and the limit of a full compilation is higher. With [`Compiler::InProcess`],
    /// the compilation has no limit.
    pub(crate) async fn compile_briefly(
        &self,
        bytes: Bytes,
        room: &CodeRoom,
    ) -> Result<Option<Compiled>, CompileError> {
        match &self.compiler {
            Compiler::Process { program, arguments, limits } if limits.cpu > BRIEF_CPU => {
                let _slot = self.slot().await?;
                let limits = CompileLimits { cpu: BRIEF_CPU, ..limits.clone() };
                match process::compile(program, arguments, &limits, bytes, room).await {
                    Err(CompileError::OutOfTime(_)) => Ok(None),
                    done => done.map(Some),
                }
            }
            _ => self.compile(bytes, room).await.map(Some),
        }
    }

    async fn slot(&self) -> Result<SemaphorePermit<'_>, CompileError> {
        // The semaphore is never closed.
        let slot = self.slots.acquire().await;
        slot.map_err(|_| CompileError::Failed(rejection::invalid("the host is shutting down")))
    }
}
