//! The `wattle` binary.

use std::process::ExitCode;

use clap::Parser as _;
use wattle::args::Args;
use wattle::command;
use wattle::exit::Exit;
use wattle::output::Output;
use wattle::telemetry;

/// A step makes and drops hundreds of small values on whatever thread it runs on, and an instance
/// of a guest lives for one call: both cost the system's allocator a quarter of a step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    telemetry::start(args.verbosity());
    // For HTTP and commands; runs and guests execute on a runtime of their own.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_name("wattle-api").enable_all().build();
    let exit = match runtime {
        Ok(runtime) => runtime.block_on(command::execute(args)),
        Err(error) => {
            Output::error(&format!("cannot start threads: {error}"));
            Exit::Failed
        }
    };
    exit.into()
}
