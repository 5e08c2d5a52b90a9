//! Compiling components by processes of the binary itself.
//!
//! The host starts its own program with a verb that `--help` does not show. A program that only uses
//! this crate has no such verb, so it compiles in its own process unless it says otherwise.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use wattle_sandbox::compile::worker::{self, WorkerLimits};
use wattle_sandbox::{CompileLimits, Compiler};

use crate::args::CompileArgs;

/// The verb.
pub const VERB: &str = "compile-component";

/// What the program of this process said.
static CHOSEN: OnceLock<Compiler> = OnceLock::new();

/// Does the work of one process, before anything of a host is set up.
pub fn work(args: &CompileArgs) -> ExitCode {
    let CompileArgs { cpu_seconds, memory_bytes } = *args;
    worker::work(WorkerLimits { cpu_seconds, memory_bytes })
}

/// Has components compiled by processes of the running program, which must know the verb.
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

/// Compiles by a program that knows the verb.
pub fn by_program(program: PathBuf, limits: CompileLimits) -> Compiler {
    Compiler::Process { program, arguments: vec![VERB.to_owned()], limits }
}

/// Where components are compiled, and what that may cost.
pub fn chosen(limits: CompileLimits) -> Compiler {
    match CHOSEN.get().cloned().unwrap_or_default() {
        Compiler::Process { program, arguments, .. } => {
            Compiler::Process { program, arguments, limits }
        }
        Compiler::InProcess => Compiler::InProcess,
    }
}

/// The program of this process, also if its file was replaced since.
fn program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe()
}
