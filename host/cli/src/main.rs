//! The `wattle` binary.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::runtime::Builder;
#[cfg(unix)]
use tokio::runtime::Runtime;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use wattle::args::{Args, Command, CompileArgs};
use wattle::command;
use wattle::exit::Exit;
use wattle::load::compiler;
use wattle::logging;
use wattle::output::Output;

/// The global allocator. With the system allocator, a superstep spends a quarter of its time in
/// allocations: a superstep makes hundreds of small allocations on various threads, and each guest
/// call allocates a new instance.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Timeout for the shutdown of the runtime after a command has ended.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// `SIGXFSZ`, the signal for a write that exceeds the limit on file sizes. Its number is the same
/// on Linux, macOS and the BSDs.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Compile(CompileArgs { niceness, cpu_seconds, memory_bytes }) = args.command {
        return compiler::run_worker(niceness, cpu_seconds, memory_bytes);
    }
    logging::start(args.verbosity(), args.printed_target());
    compiler::use_own_executable(args.compile_niceness());
    // This runtime serves HTTP and commands. Runs and guests execute on a separate runtime.
    let runtime = Builder::new_multi_thread().thread_name("wattle-api").enable_all().build();
    let exit = match runtime {
        Ok(runtime) => {
            // The handler is installed before any file is opened, because a start and a repair
            // write to files, too.
            #[cfg(unix)]
            ignore_sigxfsz(&runtime);
            let exit = runtime.block_on(command::execute(args));
            // Remaining work for a disconnected client must not keep the process alive.
            runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
            exit
        }
        Err(error) => {
            Output::error(&format!("cannot start the runtime: {error}"));
            Exit::Failed
        }
    };
    exit.into()
}

/// Handles `SIGXFSZ`, so that a write that exceeds the limit on file sizes fails like a write to a
/// full disk. Without a handler, the signal ends the process. The handler remains installed for the
/// lifetime of the process.
#[cfg(unix)]
fn ignore_sigxfsz(runtime: &Runtime) {
    let _entered = runtime.enter();
    if let Err(error) = signal(SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "cannot handle SIGXFSZ: a limit on file sizes ends the process");
    }
}
