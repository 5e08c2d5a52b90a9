//! Compiles components in separate processes of this program.
//!
//! The host starts its own executable with a command that `--help` does not show. Another
//! executable that uses this crate lacks the command, so it compiles in its own process, unless it
//! selects an executable.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use wattle_sandbox::compile::worker::{self, WorkerLimits};
use wattle_sandbox::{CompileLimits, Compiler};

use crate::args::CompileArgs;

/// Name of the compile command.
pub const VERB: &str = "compile-component";

/// The compiler that this process has selected.
static CHOSEN: OnceLock<Compiler> = OnceLock::new();

/// Compiles a component in this process. Runs before any part of a host is set up.
pub fn work(args: &CompileArgs) -> ExitCode {
    let CompileArgs { cpu_seconds, memory_bytes } = *args;
    worker::run(WorkerLimits { cpu_seconds, memory_bytes })
}

/// Selects this executable, which must have the compile command, to compile components.
pub fn use_this_program() {
    match program() {
        Ok(program) => {
            CHOSEN.get_or_init(|| by_program(program, CompileLimits::default()));
        }
        Err(error) => {
            tracing::warn!(%error, "components are compiled in this process, without limits");
        }
    }
}

/// Returns a compiler that starts an executable with the compile command.
pub fn by_program(program: PathBuf, limits: CompileLimits) -> Compiler {
    Compiler::Process { program, arguments: vec![VERB.to_owned()], limits }
}

/// Returns the selected compiler with the given limits.
pub fn chosen(limits: CompileLimits) -> Compiler {
    match CHOSEN.get().cloned().unwrap_or_default() {
        Compiler::Process { program, arguments, .. } => {
            Compiler::Process { program, arguments, limits }
        }
        Compiler::InProcess => Compiler::InProcess,
    }
}

/// Returns the executable of this process, even if its file has been replaced since the start.
fn program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}
