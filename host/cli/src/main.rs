//! The `wattle` binary.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use tokio::runtime::Builder;
#[cfg(unix)]
use tokio::runtime::Runtime;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
use wattle::args::{Args, Command};
use wattle::command;
use wattle::exit::Exit;
use wattle::load::compiler;
use wattle::output::Output;
use wattle::telemetry;

/// A step makes and drops hundreds of small values on whatever thread it runs on, and an instance
/// of a guest lives for one call: both cost the system's allocator a quarter of a step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long threads may take to let go when a command has ended.
const LET_GO: Duration = Duration::from_millis(500);

/// The signal of a write beyond the limit on the size of files, by its number on Linux, macOS and the
/// BSDs.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Compile(limits) = &args.command {
        return compiler::work(limits);
    }
    telemetry::start(args.verbosity(), args.told());
    compiler::use_this_program();
    // For HTTP and commands; runs and guests execute on a runtime of their own.
    let runtime = Builder::new_multi_thread().thread_name("wattle-api").enable_all().build();
    let exit = match runtime {
        Ok(runtime) => {
            // Before anything is opened: a start and a repair write as well.
            #[cfg(unix)]
            survive_limits_of_files(&runtime);
            let exit = runtime.block_on(command::execute(args));
            // Work for somebody who has left must not keep the process.
            runtime.shutdown_timeout(LET_GO);
            exit
        }
        Err(error) => {
            Output::error(&format!("cannot start threads: {error}"));
            Exit::Failed
        }
    };
    exit.into()
}

/// Keeps a write beyond the limit on the size of files from ending the process: with a handler, which
/// stays for as long as the process lives, the write fails, as it does on a full disk.
#[cfg(unix)]
fn survive_limits_of_files(runtime: &Runtime) {
    let _entered = runtime.enter();
    if let Err(error) = signal(SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "a limit on the size of files would end the process");
    }
}
