//! Compiles components in separate processes of this program.
//!
//! The host starts its own executable with a hidden command. Other executables that use this crate
//! lack the command. They compile in their own process, unless they select an executable.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use wattle_sandbox::compile::worker::{self, WorkerLimits};
use wattle_sandbox::{CompileLimits, Compiler};

/// Name of the compile command.
pub const COMMAND: &str = "compile-component";

/// Niceness of a process that compiles for a server. Requests and runs precede compilations on a
/// busy machine, and compilations still get about a quarter of the CPU time.
pub const SERVER_NICENESS: u8 = 5;

/// Niceness of a process that compiles for another command. A person waits for the compilation, and
/// the command does nothing else in the meantime.
pub const COMMAND_NICENESS: u8 = 0;

/// The compiler that this process has selected.
static SELECTED: OnceLock<Compiler> = OnceLock::new();

/// Compiles one component in this process, which a host has started as a worker. The caller must
/// call this function before it sets up any part of a host.
pub fn run_worker(niceness: u8, cpu_seconds: u64, memory_bytes: u64) -> ExitCode {
    worker::run(WorkerLimits { niceness, cpu_seconds, memory_bytes })
}

/// Selects this executable, which must have the compile command, to compile components in processes
/// of this niceness.
pub fn use_own_executable(niceness: u8) {
    match own_executable() {
        Ok(program) => {
            SELECTED.get_or_init(|| process_compiler(program, niceness, CompileLimits::default()));
        }
        Err(error) => {
            tracing::warn!(%error, "components are compiled in this process, without limits");
        }
    }
}

/// Returns a compiler that starts an executable with the compile command. The niceness is added to
/// that of this process.
pub fn process_compiler(program: PathBuf, niceness: u8, limits: CompileLimits) -> Compiler {
    let arguments = vec![COMMAND.to_owned(), niceness.to_string()];
    Compiler::Process { program, arguments, limits }
}

/// Returns the selected compiler with the given limits.
pub fn selected(limits: CompileLimits) -> Compiler {
    match SELECTED.get().cloned().unwrap_or_default() {
        Compiler::Process { program, arguments, .. } => {
            Compiler::Process { program, arguments, limits }
        }
        Compiler::InProcess => Compiler::InProcess,
    }
}

/// Returns the executable of this process, even if its file has been replaced since the start.
fn own_executable() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}
